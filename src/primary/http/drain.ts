// The end of connections: how long a listener that stops goes on serving them.

import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/waiting.ts'

/** A drain stops serving when no request has come for this long, milliseconds: the connections that are still open are idle. */
export const LINGER_QUIET_MS = 250
const CHECK_MS = 5
/** A turn of the event loop in which nothing happened, milliseconds. */
const SHORT_TURN_MS = 0.01
const SHORT_TURN_TRIES = 60

/** Counts the connections of the listener, and decides how long a listener that stops goes on serving them. */
export class Drain {
  #connections = 0
  #isLingering = false
  #lastRequestMs = 0

  /** @param change 1 for a connection that opens, -1 for one that is gone */
  countConnection(change: number): void {
    this.#connections += change
  }

  /** Requests are still served, each with an answer that closes its connection. */
  get isLingering(): boolean {
    return this.#isLingering
  }

  noteRequest(): void {
    this.#lastRequestMs = performance.now()
  }

  /**
   * Closes the listen socket and lingers: until no connection is open, or none has sent a request for a while, or `lingerMs` are
   * over. A client whose open connection is closed by an answer goes elsewhere. A client that is refused has failed.
   * @param closeListenSocket from then on answers close their connections; before, their clients would come back here
   * @param isReceiving true while the body of a request is on its way
   */
  async linger(lingerMs: number, closeListenSocket: () => void, isReceiving: () => boolean): Promise<void> {
    const deadlineMs = steadyMs() + lingerMs
    this.#isLingering = lingerMs > 0
    this.noteRequest()
    await shortTurn()
    closeListenSocket()
    const isQuiet = (): boolean => performance.now() - this.#lastRequestMs >= LINGER_QUIET_MS && !isReceiving()
    await until(() => this.#connections === 0 || isQuiet(), deadlineMs, { checkMs: CHECK_MS })
    this.#isLingering = false
  }
}

/**
 * Resolves right after a short turn of the event loop, under load the shortest of some tries. The library accepts waiting connections
 * once in a turn. The kernel resets a connection that comes between that and the closing of the listen socket.
 */
async function shortTurn(): Promise<void> {
  let wantedMs = SHORT_TURN_MS
  for (let tries = 0; tries < SHORT_TURN_TRIES; tries++) {
    const startMs = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (performance.now() - startMs <= wantedMs) return
    // A busy process may have no turn that short, so the limit rises with each try. The last one may take some milliseconds.
    wantedMs *= 1.1
  }
}
