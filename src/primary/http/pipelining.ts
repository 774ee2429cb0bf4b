import { atTurnEnd } from '../../core/schedule/waiting.ts'

/** A request, as it is told of. */
interface Pipelined {
  readonly requestId: string
  readonly label: string
}

/**
 * Notices a client that sends a request together with the one before it: the library closes its connection, because requests of one
 * connection are served one after another. To us it looks like a client that has gone, except that no turn of the event loop lies between
 * the request and its end. A second request that comes in a later turn cannot be told from a client that has gone.
 */
class Pipelining {
  #newest: Pipelined | null = null
  #isTurnNoted = false
  /** Told of each request that was ended so. */
  onFound: (request: Pipelined) => void = () => {}

  begun(request: Pipelined): void {
    this.#newest = request
    if (this.#isTurnNoted) return
    this.#isTurnNoted = true
    atTurnEnd(this.#endTurn)
  }

  aborted(request: Pipelined): void {
    if (this.#newest === request) this.onFound(request)
  }

  readonly #endTurn = (): void => {
    this.#isTurnNoted = false
    this.#newest = null
  }
}

/** Of the one listener that a process has. */
export const pipelining = new Pipelining()
