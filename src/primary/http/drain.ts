/** A drain that hears no request for so long stops serving: what is still open then are idle clients, milliseconds. */
export const LINGER_QUIET_MS = 250
const LOOK_MS = 5
/** A turn of the event loop in which nothing happened, milliseconds. */
const SHORT_TURN_MS = 0.01
const SHORT_TURN_TRIES = 60

/** What a listener that stops knows of its connections, and how long it goes on serving them. */
export class Drain {
  #connections = 0
  #isLingering = false
  #lastRequestMs = 0

  /** For the library, which calls it with 1 when a connection opens and with -1 when it is gone; never per request. */
  readonly countConnection = (_: unknown, change: number): void => {
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
   * over. A client that finds its open connection closed by an answer goes elsewhere; one that is refused has failed.
   * @param closeListenSocket from here on answers close their connections: not before, or their clients would come back here
   * @param isReceiving whether the body of a request is still on its way
   */
  async linger(lingerMs: number, closeListenSocket: () => void, isReceiving: () => boolean): Promise<void> {
    const endMs = performance.now() + lingerMs
    this.#isLingering = lingerMs > 0
    this.noteRequest()
    await shortTurn()
    closeListenSocket()
    while (this.#connections > 0) {
      const nowMs = performance.now()
      const isQuiet = nowMs - this.#lastRequestMs >= LINGER_QUIET_MS && !isReceiving()
      if (isQuiet || nowMs >= endMs) break
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    this.#isLingering = false
  }
}

/**
 * Resolves right after a turn of the loop that was short, the shortest of some tries under load. The library accepts all that
 * waits once in a turn; a connection that comes between that and the closing of the listen socket is reset by the kernel.
 */
async function shortTurn(): Promise<void> {
  let wantedMs = SHORT_TURN_MS
  for (let tries = 0; tries < SHORT_TURN_TRIES; tries++) {
    const startMs = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (performance.now() - startMs <= wantedMs) return
    // A busy process may have no turn that short: be content with less. The last one may take some milliseconds.
    wantedMs *= 1.1
  }
}
