import type { HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { addressFault, listeningSockets } from './address.ts'
import { AllowedHosts } from './allowed-hosts.ts'
import { listenFault } from './listen-fault.ts'

/** The library's own types leave these out. */
export interface Library {
  _cfg(option: 'silent'): void
  App(): LibraryApp
  us_listen_socket_close(socket: us_listen_socket): void
  us_socket_local_port(socket: us_listen_socket): number
}

export type LibraryApp = TemplatedApp & {
  filter(onChange: (res: HttpResponse, change: number) => void): LibraryApp
  listen(host: string, port: number, flags: number, done: (socket: us_listen_socket | false) => void): LibraryApp
}

export interface ListenSocketOptions {
  /** `HTTP` for the public address, `SYSTEM` for the one of `/system` alone: their variables begin so. */
  readonly name: 'HTTP' | 'SYSTEM'
  readonly host: string
  readonly port: number
  /** No other process may listen on the port. */
  readonly isExclusive: boolean
  readonly allowedHosts: readonly string[]
}

/** Loaded late: the library reads its limits from the environment when it loads. */
export async function loadLibrary(): Promise<Library> {
  const library = (await import('uWebSockets.js')).default as unknown as Library
  library._cfg('silent')
  return library
}

/** One address that the listener listens on, with its connections. This file alone loads uWebSockets.js. */
export class ListenSocket {
  readonly app: LibraryApp
  readonly hosts: AllowedHosts
  readonly isSystem: boolean
  readonly #library: Library
  readonly #options: ListenSocketOptions
  #socket: us_listen_socket | null = null
  #port = 0
  #isClosed = false

  constructor(library: Library, options: ListenSocketOptions) {
    this.#library = library
    this.#options = options
    this.app = library.App()
    this.hosts = new AllowedHosts(options.allowedHosts, options.host)
    this.isSystem = options.name === 'SYSTEM'
  }

  /** Binds the port and resolves with it. @throws HTTP_LISTEN when the port is taken */
  async open(): Promise<number> {
    const { name, host, port, isExclusive } = this.#options
    // The library's flag for an exclusive port would refuse a port for a minute after the end of the process that had it.
    const mayListen = !isExclusive || port === 0 || (await addressFault(host, port)) === undefined
    this.#port = port === 0 ? this.#freePort() : port
    if (!mayListen || this.#port === 0 || !this.#listen()) {
      const fault = await listenFault(host, port, name)
      throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${host}:${port}: ${fault}`)
    }
    return this.#port
  }

  /** Listens again after `shut`. False when the port has been taken meanwhile. */
  reopen(): boolean {
    return this.#isClosed || this.#socket !== null || this.#listen()
  }

  /** A port that nobody listens on; 0 when there is none. The library makes a port that it chose itself unfit to be listened on again. */
  #freePort(): number {
    let port = 0
    this.app.listen(this.#options.host, 0, 0, (socket) => {
      if (socket === false) return
      port = this.#library.us_socket_local_port(socket)
      this.#library.us_listen_socket_close(socket)
    })
    return port
  }

  #listen(): boolean {
    const { host, port, isExclusive } = this.#options
    // The library calls back at once.
    this.app.listen(host, this.#port, 0, (socket) => {
      this.#socket = socket === false ? null : socket
    })
    // Two processes that looked at the same moment would share the port unnoticed.
    const isShared = this.#socket !== null && isExclusive && port !== 0 && listeningSockets(this.#port).length > 1
    if (isShared) this.shut()
    return this.#socket !== null
  }

  /** Takes no new connections. */
  shut(): void {
    if (this.#socket !== null) this.#library.us_listen_socket_close(this.#socket)
    this.#socket = null
  }

  /** Ends all connections. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.shut()
    this.app.close()
  }
}
