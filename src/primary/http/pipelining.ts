import { atTurnEnd } from '../../core/schedule/waiting.ts'
import type { Exchange } from './exchange.ts'

/**
 * Notices a client that sends a request together with the one before it: the library closes its connection, because requests of one
 * connection are served one after another. To us it looks like a client that has gone, except that no turn of the event loop lies between
 * the request and its end. A second request that comes in a later turn cannot be told from a client that has gone.
 */
export class Pipelining {
  #newest: Exchange | null = null
  #isTurnNoted = false
  #isToldOnce = false
  /** Told of the first request that was ended so. */
  onFirst: (exchange: Exchange) => void = () => {}

  begun(exchange: Exchange): void {
    if (this.#isToldOnce) return
    this.#newest = exchange
    if (this.#isTurnNoted) return
    this.#isTurnNoted = true
    atTurnEnd(this.#endTurn)
  }

  aborted(exchange: Exchange): void {
    if (this.#newest !== exchange || this.#isToldOnce) return
    this.#isToldOnce = true
    this.#newest = null
    this.onFirst(exchange)
  }

  readonly #endTurn = (): void => {
    this.#isTurnNoted = false
    this.#newest = null
  }
}

/** Of the one listener that a process has. */
export const pipelining = new Pipelining()
