/** More deaths than this in the window: the supervisor pauses between restarts. Source: Erlang/OTP's supervisor, restart intensity. */
export const RESTART_INTENSITY = 5
export const RESTART_WINDOW_MS = 60_000
export const RESTART_MAX_PAUSE_MS = 30_000

/** How long a restart waits: not at all, unless threads die so often that a pause is better for everybody else. */
export class RestartIntensity {
  #deathsMs: number[] = []

  /** Deaths within the window. */
  get recent(): number {
    return this.#deathsMs.length
  }

  /** True when a further restart would have to wait. */
  isExceeded(nowMs: number): boolean {
    return this.#deathsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS).length >= RESTART_INTENSITY
  }

  /** A thread has died. @returns the pause before its restart, milliseconds: doubled with each death beyond the intensity */
  note(nowMs: number): number {
    this.#deathsMs = [...this.#deathsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS), nowMs]
    const surplus = this.#deathsMs.length - RESTART_INTENSITY
    return surplus <= 0 ? 0 : Math.min(RESTART_MAX_PAUSE_MS, 1000 * 2 ** (surplus - 1))
  }
}
