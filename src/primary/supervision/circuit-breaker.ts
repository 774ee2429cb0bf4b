/** A plugin whose handlers bring down this many lanes within the window is set aside. */
export const SET_ASIDE_DEATHS = 5
export const SET_ASIDE_WINDOW_MS = 60_000
/** The first pause; each further one is twice as long, up to the longest. */
export const SET_ASIDE_PAUSE_MS = 10_000
export const SET_ASIDE_MAX_PAUSE_MS = 600_000

interface Offender {
  deathsMs: number[]
  /** How often it was set aside in a row. */
  pauses: number
  timer: NodeJS.Timeout | null
  /** When it may be tried again, milliseconds since the epoch. */
  untilMs: number
  /** Since its last pause: one more death within the window sets it aside again. */
  onTrialUntilMs: number
}

export interface Aside {
  untilMs: number
  reason: string
}

/** Plugins whose handlers bring down lane after lane: they get nothing for a growing pause, so that everybody else keeps the lanes. */
export class CircuitBreaker {
  readonly #plugins = new Map<string, Offender>()
  readonly #onChange: (plugin: string, aside: Aside | null) => void

  /** @param onChange told when a plugin is set aside, and (null) when it is tried again */
  constructor(onChange: (plugin: string, aside: Aside | null) => void) {
    this.#onChange = onChange
  }

  /** A handler of this plugin has brought down a lane. @param cause what happened, with its line */
  blame(plugin: string, cause: string, nowMs = Date.now()): void {
    const record = this.#plugins.get(plugin) ?? { deathsMs: [], pauses: 0, timer: null, untilMs: 0, onTrialUntilMs: 0 }
    this.#plugins.set(plugin, record)
    const recent = record.deathsMs.filter((atMs) => nowMs - atMs < SET_ASIDE_WINDOW_MS)
    record.deathsMs = [...recent, nowMs]
    if (record.timer !== null) return
    const isOnTrial = nowMs < record.onTrialUntilMs
    if (!isOnTrial && record.deathsMs.length < SET_ASIDE_DEATHS) return
    if (!isOnTrial) record.pauses = 0
    const pauseMs = Math.min(SET_ASIDE_MAX_PAUSE_MS, SET_ASIDE_PAUSE_MS * 2 ** record.pauses)
    record.pauses++
    record.untilMs = nowMs + pauseMs
    record.timer = setTimeout(() => this.#tryAgain(plugin, record), pauseMs).unref()
    const count = isOnTrial ? 'another lane' : `${record.deathsMs.length} lanes in ${SET_ASIDE_WINDOW_MS / 1000} s`
    this.#onChange(plugin, {
      untilMs: record.untilMs,
      reason: `Set aside until ${new Date(record.untilMs).toISOString()}: its handlers brought down ${count}; last: ${cause}`,
    })
  }

  isOpen(plugin: string): boolean {
    return this.#plugins.get(plugin)?.timer != null
  }

  /** Its code is new: nothing is held against it. */
  forgive(): void {
    for (const [plugin, { timer }] of this.#plugins) {
      if (timer === null) continue
      clearTimeout(timer)
      this.#onChange(plugin, null)
    }
    this.#plugins.clear()
  }

  #tryAgain(plugin: string, record: Offender): void {
    record.timer = null
    record.deathsMs = []
    record.onTrialUntilMs = Date.now() + SET_ASIDE_WINDOW_MS
    this.#onChange(plugin, null)
  }
}
