// Rows of the log that hold no event.
import type { LogLevel } from '../../contracts/logger.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { EventRow } from '../../runtime/event-log/event-rows.ts'
import { EMPTY_ENVELOPE, frameOf } from '../../runtime/event-store/event-columns.ts'
import type { SqlLog, StoredRow } from './sql-log.ts'

/** Characters that a letter or a line shows of a column that is no event's. */
const SHOWN_MAX = 200
/** Rows that are remembered as told, at most. */
const TOLD_MAX = 1000

type Report = (level: LogLevel, message: string) => void

/** Rows of the log that hold no event: somebody else has written them, or a part of them is lost. The others go on without them. */
export class SetAside {
  readonly #log: SqlLog
  readonly #report: Report
  readonly #told = new Set<string>()

  constructor(log: SqlLog, report: Report) {
    this.#log = log
    this.#report = report
  }

  /** Makes dead letters of the rows of a page that hold no event. @returns the others */
  async from(rows: readonly StoredRow[]): Promise<readonly StoredRow[]> {
    const faults = new Map<StoredRow, string>()
    for (const stored of rows) {
      const fault = faultOf(stored.row)
      if (fault !== null) faults.set(stored, fault)
    }
    if (faults.size === 0) return rows
    for (const [{ row }, fault] of faults) await this.#take(row, fault)
    return rows.filter((stored) => !faults.has(stored))
  }

  async #take(row: EventRow, fault: string): Promise<void> {
    const seq = Number(row.seq)
    const error = `It is no event, and nobody got it: ${fault} (heddle_event, seq ${row.seq}, envelope ${shown(row.envelope)}, key ${shown(row.key)})`
    const payload = String(row.payload)
    await this.#log.bury(seq, {
      id: `dl_${this.#log.chance.id()}`,
      eventId: String(row.id),
      event: String(row.event),
      group: '',
      subscriber: '',
      key: null,
      envelope: EMPTY_ENVELOPE,
      payload,
      error,
      attempts: 0,
      blackBox: null,
      isParked: false,
      bytes: payload.length + error.length,
      atMs: this.#log.clock.nowMs(),
    })
    this.tell('heddle_event', `seq ${row.seq}`, `${fault}; it is a dead letter`)
  }

  /** Says once of a row that it is left out. */
  tell(table: string, place: string, why: string): void {
    const id = `${table} ${place}`
    if (this.#told.has(id)) return
    if (this.#told.size >= TOLD_MAX) this.#told.clear()
    this.#told.add(id)
    this.#report('WARNING', `A row of ${table} is set aside (${place}): ${why}`)
  }
}

function faultOf(row: EventRow): string | null {
  try {
    frameOf(row)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

const shown = (column: unknown): string => JSON.stringify(column)?.slice(0, SHOWN_MAX) ?? ''
