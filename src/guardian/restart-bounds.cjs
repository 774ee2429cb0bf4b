/**
 * With more deaths than this within the window the guardian gives up: what kills every start is not fixed by another. Source: Erlang/OTP's
 * supervisor, restart intensity.
 */
const RESTART_INTENSITY = 10
const RESTART_WINDOW_MS = 60_000
/** A start that dies before it serves is tried again after this long, and twice as long after each further one in a row, up to the longest. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

/** How often, and how soon, the runtime is started again. */
class RestartBounds {
  #deathsMs = []
  /** Starts in a row that never served. */
  #failedStarts = 0

  /** @returns how long the next start waits, milliseconds; null: there is none */
  died(nowMs, hasServed) {
    this.#deathsMs = [...this.#deathsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS), nowMs]
    this.#failedStarts = hasServed ? 0 : this.#failedStarts + 1
    if (this.#deathsMs.length > RESTART_INTENSITY) return null
    if (hasServed) return 0
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failedStarts - 1))
  }

  get recent() {
    return this.#deathsMs.length
  }
}

module.exports = { RestartBounds, RESTART_INTENSITY, RESTART_WINDOW_MS }
