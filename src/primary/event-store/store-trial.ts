// Tests whether events can be stored, after a thread failed to.
import { hash } from 'node:crypto'
import type { LogLevel } from '../../contracts/logger.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { isInstance, messageOf } from '../../core/errors/description.ts'
import { ownTransaction } from '../../runtime/event-store/database.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import { publicationOf } from '../../runtime/events/publication.ts'

/** Maximum wait of a trial for a lock, milliseconds. */
const LOCKED_MS = 1000
/** Larger than a page: a full disk may still have room for a small row. Hashes, because a database could compress other text. */
const TRIED = JSON.stringify({ filler: Array.from({ length: 768 }, (_, n) => hash('sha256', String(n), 'base64')) })

class TakenBack extends Error {}

/** Stores an event and takes it back, once a thread could not store one, until that succeeds. */
export class StoreTrial {
  readonly #log: ThreadStore
  readonly #report: (level: LogLevel, message: string) => void
  /** Refusals at the last trial. */
  #seen = 0
  #isTrying = false
  #fault: string | null = null

  constructor(log: ThreadStore, report: (level: LogLevel, message: string) => void) {
    this.#log = log
    this.#report = report
  }

  /** Known reason why nothing can be stored; null if it can. */
  get fault(): string | null {
    return this.#fault
  }

  look(): void {
    const { refusals, isOpen } = this.#log.memory
    // Until it is open, `open` says why.
    if (!isOpen || this.#isTrying) return
    if (this.#fault === null && refusals === this.#seen) return
    this.#seen = refusals
    void this.#try()
  }

  async #try(): Promise<void> {
    this.#isTrying = true
    const log = this.#log
    try {
      await ownTransaction(log.database, async (tx) => {
        // A lock on one of the tables blocks publishers as well.
        if (log.isOnServer) await tx.execute(`SET LOCAL lock_timeout = ${LOCKED_MS}`)
        // Publishers join it.
        await tx.queryOne('SELECT 1 AS found FROM heddle_group LIMIT 1')
        await log.insertOwn(tx, [publicationOf('event_bus', 'runtime.trial', TRIED, 'filler', {})])
        throw new TakenBack()
      })
    } catch (error) {
      this.#tried(error)
    }
    this.#isTrying = false
  }

  #tried(error: unknown): void {
    if (error instanceof TakenBack) {
      if (this.#fault !== null) this.#report('INFO', 'The event store takes events again')
      this.#fault = null
      return
    }
    const isAway = isInstance(error, DbError) && error.kind === 'unavailable'
    const fault = `the event store ${isAway ? 'cannot be used' : 'takes no events'}: ${messageOf(error)}`
    if (fault !== this.#fault) this.#report('WARNING', fault)
    this.#fault = fault
  }
}
