import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, pause } from '../../core/schedule/clock.ts'
import type { EventRow } from '../../runtime/event-log/event-rows.ts'
import { frameOf } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import { type EventSource, hubEventOf } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Settler } from './settler.ts'
import { newDelivery, type StoredEvent } from './stored-events.ts'

/** Copies that are read in one step. */
const PAGE = 128
/** Pause before copies are made again that the database did not take, milliseconds. */
const RETRY_MS = 250

/** For the processes that take part at this moment. Whoever comes later has missed it, as a thread that starts later has. */
const MAKE = `
  INSERT INTO heddle_copy (reader, number, id, event, envelope, payload, key, expires_ms)
  SELECT reader, nextval('heddle_order'), id, event, envelope, payload, key, expires_ms FROM (
    SELECT epoch AS reader, heddle_event.* FROM unnest($2::bigint[]) WITH ORDINALITY AS listed (seq, place)
      JOIN heddle_event USING (seq) CROSS JOIN heddle_process
    WHERE epoch <> $1 AND is_ready = 1 AND adopter IS NULL AND expires_at > now() ORDER BY place) AS copies`
const READ = `
  SELECT number, id, event, envelope, payload, key, expires_ms FROM heddle_copy WHERE reader = $1 ORDER BY number LIMIT ${PAGE}`

type CopyRow = Pick<EventRow, 'id' | 'event' | 'envelope' | 'payload' | 'key' | 'expires_ms'> & { number: number }

interface CopiesParts {
  hub: Hub
  settler: Settler
  clock: Clock
  database: () => LogDatabase
  /** Number of this process. */
  epoch: () => number
  /** The copies of an event are stored. */
  onStored: (event: StoredEvent) => void
  /** There are copies for others. */
  onMade: () => void
  /** A copy holds no event. */
  onMalformed: (number: number, why: string) => void
}

/**
 * Copies of broadcast events for the other processes: the one that delivers an event makes one for each, and forgets the event only then. A process
 * deletes its copies as soon as its threads have them, which end with it.
 */
export class BroadcastCopies {
  readonly #parts: CopiesParts
  /** Events to be copied. */
  #waiting: StoredEvent[] = []
  #isMaking = false
  /** Of a delivery of a copy only its dead letter is stored. */
  readonly #source: EventSource
  /** Copies that the threads have, and whose deletion is not known to be committed. */
  readonly #delivered = new Set<number>()

  constructor(parts: CopiesParts) {
    this.#parts = parts
    this.#source = {
      isBroker: false,
      storeDeadLetter: (_, letter) => parts.settler.letter(parts.settler.rowOf(letter)),
      ended: () => {},
    }
  }

  /** Copies an event that is stored: it is held until the copies are, too. */
  make(event: StoredEvent): void {
    event.isHeld = true
    event.deliveries++
    this.#waiting.push(event)
    if (!this.#isMaking) void this.#makeAll()
  }

  async #makeAll(): Promise<void> {
    const { database, epoch, onStored, onMade } = this.#parts
    this.#isMaking = true
    // What has come in the same turn of the loop is copied together.
    await nextTurn(this.#parts.clock)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, PAGE)
      try {
        await database().execute(MAKE, [epoch(), `{${batch.map(({ seq }) => seq).join(',')}}`])
        for (const event of batch) onStored(event)
        onMade()
      } catch {
        // The process says itself that the log cannot be used.
        this.#waiting.unshift(...batch)
        await pause(this.#parts.clock, RETRY_MS)
      }
    }
    this.#isMaking = false
  }

  /** Gives the next copies for this process to its threads. @returns false when there was none */
  async deliver(): Promise<boolean> {
    const { database, epoch } = this.#parts
    const rows = await database().query<CopyRow>(READ, [epoch()])
    if (rows.length === 0) return false
    const numbers = rows.map(({ number }) => Number(number))
    for (const row of rows) {
      if (this.#delivered.has(Number(row.number))) continue
      this.#delivered.add(Number(row.number))
      const frame = this.#frameOf(row)
      if (frame !== null) this.#deliver(asBytes(frame), Number(row.expires_ms))
    }
    const list = `{${numbers.join(',')}}`
    await database().execute('DELETE FROM heddle_copy WHERE reader = $1 AND number = ANY($2::bigint[])', [
      epoch(),
      list,
    ])
    for (const number of numbers) this.#delivered.delete(number)
    return true
  }

  #deliver(frame: EventFrame, expiresMs: number): void {
    const { hub } = this.#parts
    hub.record(frame, null)
    const groups = hub.broadcastGroupsOf(frame.event)
    hub.take(
      hubEventOf(frame, expiresMs, this.#source),
      groups.map((group) => newDelivery(0, group)),
    )
  }

  #frameOf(row: CopyRow): EventFrame | null {
    try {
      return frameOf({ ...row, seq: 0 })
    } catch (error) {
      this.#parts.onMalformed(Number(row.number), messageOf(error))
      return null
    }
  }
}

/** Removes copies of processes that are not known any more. */
export async function dropCopies(database: LogDatabase): Promise<void> {
  await database.execute('DELETE FROM heddle_copy WHERE reader NOT IN (SELECT epoch FROM heddle_process)')
}
