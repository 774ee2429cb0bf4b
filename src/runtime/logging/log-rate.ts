import type { LogLevel } from '../../contracts/logger.ts'

/** The rate holds over this time, milliseconds. */
const WINDOW_MS = 1000
/** This share of the rate is left for warnings and errors. */
const RESERVED_SHARE = 0.2

type LeftOut = Partial<Record<LogLevel, number>>

interface Window {
  startMs: number
  records: number
  leftOut: LeftOut
}

interface LogRateOptions {
  /** LOG_PLUGIN_RATE: records per second of one plugin or tool in this thread. */
  perSecond: number
  /** Told once per window and identity what was left out. It is to be logged without asking here. */
  onLeftOut: (identity: string, message: string, leftOut: LeftOut) => void
}

/**
 * Limits how many log records a plugin writes per second, in its own thread: one that logs in a loop costs the primary and the other plugins
 * no more than that.
 */
export class LogRate {
  readonly #options: LogRateOptions
  readonly #lowMax: number
  readonly #windows = new Map<string, Window>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: LogRateOptions) {
    this.#options = options
    this.#lowMax = Math.ceil(options.perSecond * (1 - RESERVED_SHARE))
  }

  /** Counts a record. False when it is one too many. */
  admits(level: LogLevel, identity: string): boolean {
    const window = this.#windowOf(identity)
    const max = level === 'DEBUG' || level === 'INFO' ? this.#lowMax : this.#options.perSecond
    if (window.records < max) {
      window.records++
      return true
    }
    this.leaveOut(level, identity)
    return false
  }

  /** Counts a record that is not written. */
  leaveOut(level: LogLevel, identity: string): void {
    const { leftOut } = this.#windowOf(identity)
    leftOut[level] = (leftOut[level] ?? 0) + 1
    // A thread in a loop turns no timer: then its next record after the window tells.
    this.#timer ??= setTimeout(this.#tellAll, WINDOW_MS).unref()
  }

  #windowOf(identity: string): Window {
    const nowMs = performance.now()
    const window = this.#windows.get(identity)
    if (window === undefined) {
      const first = { startMs: nowMs, records: 0, leftOut: {} }
      this.#windows.set(identity, first)
      return first
    }
    if (nowMs - window.startMs >= WINDOW_MS) this.#turn(identity, window, nowMs)
    return window
  }

  #turn(identity: string, window: Window, nowMs: number): void {
    const { leftOut } = window
    window.startMs = nowMs
    window.records = 0
    window.leftOut = {}
    const count = Object.values(leftOut).reduce((sum, records) => sum + records, 0)
    if (count === 0) return
    const { perSecond } = this.#options
    const message = `${count} log records were left out: more than ${perSecond} in a second (LOG_PLUGIN_RATE), or than the primary takes in`
    this.#options.onLeftOut(identity, message, leftOut)
  }

  readonly #tellAll = (): void => {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const [identity, window] of this.#windows) this.#turn(identity, window, nowMs)
  }
}
