// The dead letters in the database: listed, replayed, edited, deleted.
import type { Queryable } from '../../contracts/db.ts'
import type { DeadLetter, DeadLetterPage, LetterReplay } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { messageOf } from '../../core/errors/description.ts'
import { ownTransaction } from '../../runtime/event-store/database.ts'
import { envelopeOf, frameOf, keyOf } from '../../runtime/event-store/event-columns.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import { splitKeys } from '../../runtime/events/publication.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { DeadLetterCollector, type DeadLetters } from '../events/dead-letters.ts'
import type { Hub } from '../events/hub.ts'
import type { KeyPlace } from '../events/key-order.ts'
import type { Durable } from './durable.ts'

/** Pause before the outcome of an unanswered commit is asked for again, milliseconds. */
const ASK_MS = 500
/** Number of dead letters read in one step: each may have a MiB. */
const STEP = 50

/** A row of `heddle_dead`, without its payload. */
interface DeadLetterRow {
  id: string
  event_id: string
  event: string
  grp: string
  key: string | null
  subscriber: string
  envelope: string
  error: string
  attempts: number
  black_box: string | null
  is_parked: number
  /** JSON array of the keys and the payload before the edit; null: not edited. */
  original: string | null
  replay: '' | LetterReplay['outcome']
  replayed_ms: number
  replay_error: string | null
  replay_letter: string | null
  at_ms: number
}

/** A dead letter made an event again, and its position. */
interface ReplayedRow {
  deadLetter: DeadLetterRow
  frame: EventFrame
  position: number
  /** See `StoredCancels`. */
  revival: number
}

/** The dead letters in the database. Dead letters of requests are in the hub's memory: the list shows both. */
export class StoredDeadLetters implements DeadLetters {
  readonly #hub: Hub
  readonly #log: ThreadStore
  readonly #durable: Durable

  constructor(hub: Hub, log: ThreadStore, durable: Durable) {
    this.#hub = hub
    this.#log = log
    this.#durable = durable
  }

  async list(wanted: DeadLetterPage = {}): Promise<DeadLetter[]> {
    const stored = this.#durable.isOpen ? await this.#stored(wanted) : []
    const inMemory = this.#hub.deadLetters.list(wanted)
    if (inMemory.length === 0) return stored
    // Ids grow with time.
    const newestFirst = [...stored, ...inMemory].sort((a, b) => (a.id < b.id ? 1 : -1))
    const page = new DeadLetterCollector(wanted)
    page.add(newestFirst)
    return page.oldestFirst()
  }

  async #stored(wanted: DeadLetterPage): Promise<DeadLetter[]> {
    const page = new DeadLetterCollector(wanted)
    let before = wanted.before ?? 'e'
    for (;;) {
      const rows = await this.#log.database.query<DeadLetterRow>(
        `SELECT id, event_id, event, grp, key, subscriber, envelope, error, attempts, black_box, is_parked, original,
           at_ms, replay, replayed_ms, replay_error, replay_letter
         FROM heddle_dead WHERE id < $1 AND replay ${wanted.replayed ? '<>' : '='} ''${wanted.parked ? ' AND is_parked = 1' : ''} ORDER BY id DESC LIMIT ${STEP}`,
        [before],
      )
      const isFull = page.add(await Promise.all(rows.map((row) => this.#listed(row))))
      if (isFull || rows.length < STEP) return page.oldestFirst()
      before = rows.at(-1)!.id
    }
  }

  async #listed(row: DeadLetterRow): Promise<DeadLetter> {
    const deadLetter = listed(row)
    if (!deadLetter.parked) return deadLetter
    const { store } = this.#durable
    const { event, group, key } = placeOf(row)
    const shown = store === null ? {} : await store.replays.waitingFor(event, group, key!)
    return { ...deadLetter, ...shown }
  }

  /** In one commit. */
  async replay(id: string): Promise<boolean> {
    const inMemory = this.#hub.deadLetters.eventOf(id)
    if (inMemory !== null) {
      // What it causes may be stored.
      if (this.#durable.isOpen) await this.#durable.store!.cancels.revive(inMemory)
      return this.#hub.deadLetters.replay(id)
    }
    if (!this.#durable.isOpen) return false
    let replayed: ReplayedRow | null = null
    try {
      await ownTransaction(this.#log.database, async (tx) => {
        replayed = await this.#moveIn(tx, id)
      })
    } catch (error) {
      if (replayed !== null)
        void this.#goOnIf(
          () => this.#isReplayed(id, replayed!),
          () => this.#goesOn(id, replayed!),
        )
      throw error
    }
    if (replayed === null) return false
    this.#goesOn(id, replayed)
    return true
  }

  /** Makes the dead letter an event of its group again. */
  async #moveIn(tx: Queryable, id: string): Promise<ReplayedRow | null> {
    // Locks the row: if two processes replay it, one finds it replayed.
    await tx.execute("UPDATE heddle_dead SET replay = replay WHERE id = $1 AND replay = ''", [id])
    const deadLetter = await tx.queryOne<DeadLetterRow & { payload: string }>(
      "SELECT event_id, event, grp, envelope, payload, key, is_parked FROM heddle_dead WHERE id = $1 AND replay = ''",
      [id],
    )
    if (deadLetter === null || !this.#hub.hasConsumer(deadLetter.event, deadLetter.grp)) return null
    const frame = eventOf({ ...deadLetter, id: deadLetter.event_id, seq: 0 })
    if (frame === null) return null
    const position = (await this.#durable.store?.replays.moveIn(tx, id, deadLetter.grp, frame)) ?? null
    if (position === null) return null
    const revival = await this.#durable.store!.cancels.reviving(tx, frame)
    return { deadLetter, frame, position, revival }
  }

  #goesOn(id: string, { deadLetter, frame, position, revival }: ReplayedRow): void {
    this.#durable.store?.cancels.revived(frame, revival)
    this.#durable.store?.replays.begun(id, deadLetter.event, deadLetter.grp, keyOf(deadLetter.key), position)
  }

  async #isReplayed(id: string, { position }: ReplayedRow): Promise<boolean> {
    const sql = "SELECT 1 AS found FROM heddle_dead WHERE id = $1 AND replay = 'running' AND replay_seq = $2"
    return (await this.#log.database.queryOne(sql, [id, position])) !== null
  }

  /** Called after a commit without an answer. If it succeeded, this process continues, since no other does. @param hasSucceeded asks the database */
  async #goOnIf(hasSucceeded: () => Promise<boolean>, goOn: () => void): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => this.#log.clock.after(ASK_MS, resolve).unref())
      try {
        if (await hasSucceeded()) goOn()
        return
      } catch {
        // It is asked again.
      }
    }
  }

  async payload(id: string): Promise<string | null> {
    const inMemory = this.#hub.deadLetters.payload(id)
    if (inMemory !== null || !this.#durable.isOpen) return inMemory
    const sql = "SELECT payload FROM heddle_dead WHERE id = $1 AND replay = ''"
    return (await this.#log.database.queryOne<{ payload: string }>(sql, [id]))?.payload ?? null
  }

  async edit(id: string, json: string, keys: string): Promise<boolean> {
    if (this.#hub.deadLetters.edit(id, json, keys)) return true
    if (!this.#durable.isOpen) return false
    return ownTransaction(this.#log.database, async (tx) => {
      const deadLetter = await tx.queryOne<DeadLetterRow & { payload: string }>(
        "SELECT event_id, event, envelope, payload, key, original FROM heddle_dead WHERE id = $1 AND replay = ''",
        [id],
      )
      if (deadLetter === null) return false
      const frame = eventOf({ ...deadLetter, id: deadLetter.event_id, seq: 0 })
      if (frame === null) return false
      const original = deadLetter.original ?? JSON.stringify([splitKeys(frame.payloadKeys), deadLetter.payload])
      const { rowCount } = await tx.execute(
        "UPDATE heddle_dead SET payload = $1, envelope = $2, original = $3 WHERE id = $4 AND replay = ''",
        [json, envelopeOf({ ...frame, payloadKeys: keys }), original, id],
      )
      return rowCount === 1
    })
  }

  async delete(id: string): Promise<boolean> {
    if (this.#hub.deadLetters.delete(id)) return true
    if (!this.#durable.isOpen) return false
    let deadLetter: DeadLetterRow | null = null
    try {
      await ownTransaction(this.#log.database, async (tx) => {
        deadLetter = await tx.queryOne<DeadLetterRow>(
          "SELECT event, grp, key, is_parked FROM heddle_dead WHERE id = $1 AND replay = ''",
          [id],
        )
        const { rowCount } = await tx.execute("DELETE FROM heddle_dead WHERE id = $1 AND replay = ''", [id])
        await tx.execute('DELETE FROM heddle_parked WHERE dead_letter = $1', [id])
        // Another process has replayed or deleted it meanwhile.
        if (rowCount === 0) deadLetter = null
      })
    } catch (error) {
      if (deadLetter !== null)
        void this.#goOnIf(
          () => this.#isGone(id),
          () => this.#gone(id, deadLetter!),
        )
      throw error
    }
    if (deadLetter === null) return false
    this.#gone(id, deadLetter)
    return true
  }

  async #isGone(id: string): Promise<boolean> {
    return (await this.#log.database.queryOne('SELECT 1 AS found FROM heddle_dead WHERE id = $1', [id])) === null
  }

  /** Unblocks its key. */
  #gone(id: string, deadLetter: DeadLetterRow): void {
    if (Number(deadLetter.is_parked) !== 1) return
    this.#durable.store?.replays.deleted(id, deadLetter.event, deadLetter.grp)
  }
}

/** Returns the event of a dead letter; null if it holds none. */
function eventOf(row: Parameters<typeof frameOf>[0]): EventFrame | null {
  try {
    return frameOf(row)
  } catch {
    return null
  }
}

function isKey(column: string | null): boolean {
  try {
    keyOf(column)
    return true
  } catch {
    return false
  }
}

const placeOf = ({ event, grp, key }: Pick<DeadLetterRow, 'event' | 'grp' | 'key'>): KeyPlace => ({
  event,
  group: grp,
  key: keyOf(key),
})

function listed(row: DeadLetterRow): DeadLetter {
  try {
    return shownLetter(row)
  } catch (error) {
    // A foreign or damaged row: it can be deleted.
    const { id, event, event_id, subscriber } = row
    const timestamp = new Date(0).toISOString()
    const why = `${row.error} (its row in heddle_dead holds no event: ${messageOf(error)})`
    return { id, event, event_id, subscriber, error: why, attempts: 0, payload_keys: [], timestamp, request_id: null }
  }
}

function shownLetter(row: DeadLetterRow): DeadLetter {
  const { requestId, payloadKeys } = frameOf({ ...row, id: row.event_id, seq: 0, payload: '', key: null })
  const box = row.black_box === null ? null : (JSON.parse(row.black_box) as BlackBox)
  return {
    id: row.id,
    event: row.event,
    event_id: row.event_id,
    subscriber: row.subscriber,
    error: row.error,
    attempts: Number(row.attempts),
    ...(box === null ? {} : { black_box: box }),
    ...(row.original === null ? {} : { original_keys: (JSON.parse(row.original) as [string[], string])[0] }),
    ...(row.replay === '' ? {} : { replay: replayOf(row) }),
    ...(Number(row.is_parked) === 1 && isKey(row.key) ? { parked: true } : {}),
    payload_keys: splitKeys(payloadKeys),
    timestamp: new Date(Number(row.at_ms)).toISOString(),
    request_id: requestId,
  }
}

function replayOf({ replay, replayed_ms, replay_error, replay_letter }: DeadLetterRow): LetterReplay {
  return {
    at: new Date(Number(replayed_ms)).toISOString(),
    outcome: replay as LetterReplay['outcome'],
    ...(replay_error === null ? {} : { error: replay_error }),
    ...(replay_letter === null ? {} : { letter: replay_letter }),
  }
}
