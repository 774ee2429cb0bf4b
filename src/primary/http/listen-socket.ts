// Listens, by the library that this machine can load.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { AllowedHosts } from './access.ts'
import type { HttpApp, HttpLibrary } from './library.ts'
import { addressFault, listenFault, listeningSockets } from './listening.ts'
import { loadUws } from './uws-library.ts'

interface Choice {
  readonly library: HttpLibrary
  /** Why uWebSockets.js does not load; null when it does, or was not asked for. */
  readonly missing: string | null
}

/** @param wanted `HTTP_LISTENER`. @throws HTTP_LISTEN when uWebSockets.js is asked for and does not load */
export async function chooseLibrary(wanted: 'auto' | 'uws' | 'node'): Promise<Choice> {
  const loadNode = async (): Promise<HttpLibrary> => (await import('./node/node-library.ts')).loadNode()
  if (wanted === 'node') return { library: await loadNode(), missing: null }
  try {
    return { library: await loadUws(), missing: null }
  } catch (error) {
    const missing = messageOf(error).split('\n')[0]!
    if (wanted === 'auto') return { library: await loadNode(), missing }
    throw new HeddleError('HTTP_LISTEN', `HTTP_LISTENER=uws, and uWebSockets.js does not load here: ${missing}`)
  }
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

/** One address that the listener listens on, with its connections. */
export class ListenSocket {
  readonly app: HttpApp
  readonly hosts: AllowedHosts
  readonly isSystem: boolean
  readonly #options: ListenSocketOptions
  #port = 0
  #state: 'shut' | 'opening' | 'open' | 'closed' = 'shut'

  constructor(app: HttpApp, options: ListenSocketOptions) {
    this.#options = options
    this.app = app
    this.hosts = new AllowedHosts(options.allowedHosts, options.host)
    this.isSystem = options.name === 'SYSTEM'
  }

  /** Binds the port and resolves with it. @throws HTTP_LISTEN when the port is taken */
  async open(): Promise<number> {
    const { name, host, port, isExclusive } = this.#options
    this.#port = port
    // The library's flag for an exclusive port would refuse a port for a minute after the end of the process that had it.
    const mayListen = !isExclusive || port === 0 || (await addressFault(host, port)) === undefined
    if (!mayListen || !(await this.#listen())) {
      const fault = await listenFault(host, port, name)
      throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${host}:${port}: ${fault}`)
    }
    return this.#port
  }

  /** Listens again after `shut`. False when the port has been taken meanwhile. */
  async reopen(): Promise<boolean> {
    return this.#state !== 'shut' || (await this.#listen())
  }

  async #listen(): Promise<boolean> {
    const { host, port, isExclusive } = this.#options
    this.#state = 'opening'
    const bound = await this.app.listen(host, this.#port, !isExclusive)
    // Shut or closed meanwhile.
    if (this.#state !== 'opening') {
      this.app.shut()
      return true
    }
    this.#state = bound === 0 ? 'shut' : 'open'
    if (bound !== 0) this.#port = bound
    // Two processes that looked at the same moment would share the port unnoticed.
    const isShared = bound !== 0 && isExclusive && port !== 0 && listeningSockets(bound).length > 1
    if (isShared) this.shut()
    return this.#state === 'open'
  }

  /** Takes no new connections. */
  shut(): void {
    if (this.#state === 'closed') return
    this.#state = 'shut'
    this.app.shut()
  }

  /** Ends all connections. */
  close(): void {
    if (this.#state === 'closed') return
    this.shut()
    this.#state = 'closed'
    this.app.close()
  }
}
