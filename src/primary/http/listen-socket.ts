import { HeddleError } from '../../core/errors/catalogue.ts'
import { AllowedHosts } from './access.ts'
import type { HttpApp } from './library.ts'
import { addressFault, listenFault, listeningSockets } from './listening.ts'

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
