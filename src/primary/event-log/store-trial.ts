import type { LogLevel } from '../../contracts/logger.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { isInstance, messageOf } from '../../core/errors/description.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { publicationOf } from '../../runtime/events/publication.ts'

/** How often it is tried while the log takes nothing, milliseconds. */
const TRY_MS = 1000

class TakenBack extends Error {}

/** Finds out whether the log takes events, once a thread could not store any: one is stored and taken back, until that succeeds. */
export class StoreTrial {
  readonly #log: EventLog
  readonly #report: (level: LogLevel, message: string) => void
  /** Refusals that have been followed by a trial. */
  #seen = 0
  #notBeforeMs = 0
  #isTrying = false
  #fault: string | null = null
  #isOwn = false

  constructor(log: EventLog, report: (level: LogLevel, message: string) => void) {
    this.#log = log
    this.#report = report
  }

  /** Why nothing can be stored; null when it can, as far as is known. */
  get fault(): string | null {
    return this.#fault
  }

  /** The database answers, and refuses what this process stores: not only because it is away. */
  get isRefused(): boolean {
    return this.#fault !== null && this.#isOwn
  }

  look(nowMs: number): void {
    const { refusals, isOpen } = this.#log.memory
    // Before it is open it says itself why.
    if (!isOpen || this.#isTrying || nowMs < this.#notBeforeMs) return
    if (this.#fault === null && refusals === this.#seen) return
    this.#seen = refusals
    this.#notBeforeMs = nowMs + TRY_MS
    void this.#try()
  }

  async #try(): Promise<void> {
    this.#isTrying = true
    const log = this.#log
    try {
      await log.database.transaction(async (tx) => {
        await log.insertOwn(tx, [publicationOf('event_bus', 'runtime.trial', '{}', '', {})])
        throw new TakenBack()
      })
    } catch (error) {
      this.#tried(error)
    }
    this.#isTrying = false
  }

  #tried(error: unknown): void {
    if (error instanceof TakenBack) {
      if (this.#fault !== null) this.#report('INFO', 'The event log takes events again')
      this.#fault = null
      return
    }
    const fault = `the event log takes no events: ${messageOf(error)}`
    if (fault !== this.#fault) this.#report('WARNING', fault)
    this.#fault = fault
    this.#isOwn = !(isInstance(error, DbError) && error.isPassing)
  }
}
