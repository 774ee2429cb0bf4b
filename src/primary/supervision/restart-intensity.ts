import { DeathWindow } from './death-window.ts'

/** With more deaths than this in the window the supervisor pauses between restarts. Source: Erlang/OTP's supervisor, restart intensity. */
export const RESTART_INTENSITY = 5
export const RESTART_WINDOW_MS = 60_000
export const RESTART_MAX_PAUSE_MS = 30_000
/** The restart of a lane waits no longer than this while there is no other lane. */
export const LAST_LANE_MAX_PAUSE_MS = 500

/** How long a restart waits. There is no pause unless threads die so often that one is better for all the others. */
export class RestartIntensity {
  readonly #deaths = new DeathWindow(RESTART_WINDOW_MS)

  /** Deaths within the window. */
  get recent(): number {
    return this.#deaths.size
  }

  /** True when a further restart would have to wait. */
  isExceeded(nowMs: number): boolean {
    return this.#deaths.count(nowMs) >= RESTART_INTENSITY
  }

  /** A thread has died. @returns the pause before its restart, milliseconds: doubled with each death beyond the intensity */
  recordDeath(nowMs: number): number {
    this.#deaths.add(nowMs)
    const surplus = this.#deaths.size - RESTART_INTENSITY
    return surplus <= 0 ? 0 : Math.min(RESTART_MAX_PAUSE_MS, 1000 * 2 ** (surplus - 1))
  }
}
