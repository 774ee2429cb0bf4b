import type { LogLevel } from '../../contracts/logger.ts'

/** Milliseconds between two log lines about one loss of a connection. */
const REMINDER_MS = 60_000
/** A connection that is lost more often than this is logged once in this time. Milliseconds. */
const FLAP_MS = 5000

export type WriteLog = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/** Logs one line when a connection is lost, one when it is back, and a reminder now and then, but not one for each attempt. */
export class ConnectionLog {
  readonly #write: WriteLog
  readonly #name: string
  /** Null while the connection is up. */
  #downSinceMs: number | null = null
  #toldMs = Number.NEGATIVE_INFINITY
  #told = ''
  /** The present loss was logged, so its end must be logged too. */
  #isTold = false
  /** Losses that were not logged. */
  #untold = 0

  constructor(write: WriteLog, name: string) {
    this.#write = write
    this.#name = name
  }

  /** Call it for every failure, also for one of an attempt to reconnect. */
  down(message: string): void {
    const nowMs = performance.now()
    const isLoss = this.#downSinceMs === null
    this.#downSinceMs ??= nowMs
    const silentMs = nowMs - this.#toldMs
    const isDue = isLoss || !this.#isTold || message !== this.#told ? silentMs >= FLAP_MS : silentMs >= REMINDER_MS
    if (!isDue) {
      if (isLoss) this.#untold++
      return
    }
    const fields: Record<string, unknown> = { connection: this.#name }
    if (!isLoss) fields.down_s = Math.round((nowMs - this.#downSinceMs) / 1000)
    if (this.#untold > 0) fields.losses_not_logged = this.#untold
    this.#write('WARNING', `${message}. Trying again until it works.`, fields)
    this.#untold = 0
    this.#toldMs = nowMs
    this.#told = message
    this.#isTold = true
  }

  up(place: string): void {
    if (this.#downSinceMs === null) return
    const down_s = Math.round((performance.now() - this.#downSinceMs) / 1000)
    this.#downSinceMs = null
    if (!this.#isTold) return
    this.#isTold = false
    this.#write('INFO', `${place} answers again`, { connection: this.#name, down_s })
  }
}
