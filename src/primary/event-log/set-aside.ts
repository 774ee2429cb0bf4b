// What is set aside in the log: behind a dead letter, or for a group that is away.
import type { LogLevel } from '../../contracts/logger.ts'
import { timeOrderedId } from '../../core/causality/ids.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { andOwned, EMPTY_ENVELOPE, type EventRow, frameOf } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { insertLetter } from '../../runtime/event-log/write-changes.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Hub } from '../events/hub.ts'
import { type OpenLetter, readOpenLetters, type StoredRow } from './log-reader.ts'
import type { StoredEvents } from './stored-events.ts'

/** Characters that a letter or a line shows of a column that is no event's. */
const SHOWN_MAX = 200
/** Rows that are remembered as told, at most. */
const TOLD_MAX = 1000

type Report = (level: LogLevel, message: string) => void

/** Rows of the log that hold no event: somebody else has written them, or a part of them is lost. The others go on without them. */
export class SetAside {
  readonly #report: Report
  readonly #told = new Set<string>()

  constructor(report: Report) {
    this.#report = report
  }

  /** Makes dead letters of the rows of a page that hold no event. @returns the others */
  async from(rows: readonly StoredRow[], database: LogDatabase, epoch: number): Promise<readonly StoredRow[]> {
    const faults = new Map<StoredRow, string>()
    for (const stored of rows) {
      const fault = faultOf(stored.row)
      if (fault !== null) faults.set(stored, fault)
    }
    if (faults.size === 0) return rows
    for (const [{ row }, fault] of faults) await this.#take(row, fault, database, epoch)
    return rows.filter((stored) => !faults.has(stored))
  }

  async #take(row: EventRow, fault: string, database: LogDatabase, epoch: number): Promise<void> {
    const seq = Number(row.seq)
    const error = `It is no event, and nobody got it: ${fault} (heddle_event, seq ${row.seq}, envelope ${shown(row.envelope)}, key ${shown(row.key)})`
    const payload = String(row.payload)
    await database.transaction(async (tx) => {
      await insertLetter(tx, {
        id: `dl_${timeOrderedId()}`,
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
        atMs: Date.now(),
      })
      await tx.execute('DELETE FROM heddle_delivery WHERE seq = $1', [seq])
      await tx.execute(`DELETE FROM heddle_event WHERE seq = $1${andOwned(epoch)}`, [seq])
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

/** How often other processes' letters are looked at while keys wait here, milliseconds. */
const LOOK_MS = 1000

interface HeldEventsParts {
  hub: Hub
  log: EventLog
  events: StoredEvents
  setAside: SetAside
}

/** What the log knows of keys that wait behind dead letters: the hub's parked keys as they are stored. */
export class HeldEvents {
  readonly #hub: Hub
  readonly #log: EventLog
  readonly #events: StoredEvents
  readonly #setAside: SetAside
  /** Replays that had not ended when they were read of, by the positions of their events. */
  readonly #openReplays = new Map<number, OpenLetter>()
  #lookedMs = 0
  /** The ended process whose letters are known here. */
  #learnedOf = 0

  constructor({ hub, log, events, setAside }: HeldEventsParts) {
    this.#hub = hub
    this.#log = log
    this.#events = events
    this.#setAside = setAside
  }

  #readOpenLetters(): Promise<OpenLetter[]> {
    return readOpenLetters(this.#log.database, (id, why) => this.#setAside.tell('heddle_dead', id, why))
  }

  /** Reads what waits behind letters, and which are being replayed. */
  async learn(): Promise<void> {
    const open = await this.#readOpenLetters()
    for (const letter of open) if (letter.seq > 0) this.#openReplays.set(letter.seq, letter)
    this.#hold(open)
  }

  /** Their keys wait, but for those whose replay is this process's own. */
  #hold(open: readonly OpenLetter[]): void {
    const { parked } = this.#hub
    for (const { id, place, isParked, seq } of open)
      if (isParked && (seq === 0 || parked.find(place)?.replay !== seq)) parked.hold(place, id)
  }

  /** Several processes share the letters: what another one has replayed or deleted goes on here. */
  async look(nowMs: number): Promise<void> {
    const { parked, deadLetters } = this.#hub
    if (parked.isEmpty || nowMs - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = nowMs
    const known = parked.letters().filter(({ id }) => !this.#events.isStoring(id) && !deadLetters.has(id))
    const open = await this.#readOpenLetters()
    const ids = new Set(open.map(({ id }) => id))
    // A replay that has failed again elsewhere has left a new letter.
    this.#hold(open)
    for (const { id, place } of known) if (!ids.has(id)) parked.letterGone(place, id)
  }

  /** What an ended process had parked is parked here. @param epoch its number */
  async learnOf(epoch: number): Promise<void> {
    if (epoch === this.#learnedOf) return
    await this.learn()
    this.#learnedOf = epoch
  }

  /** An ended process may have begun to replay a letter with this event: it goes on here, before what waits for it. */
  learnReplay(seq: number): void {
    const letter = this.#openReplays.get(seq)
    if (letter === undefined) return
    this.#openReplays.delete(seq)
    this.#events.replaying(seq)
    if (letter.isParked) this.#hub.parked.replaying(letter.place, letter.id, seq)
  }

  /** True when the event waits behind dead letters, for all its subscribers: no process has died of it. */
  isHeld({ event, key, seq }: EventFrame, left: StoredRow['left']): boolean {
    const { parked } = this.#hub
    if (key === null || parked.isEmpty) return false
    const groups = left?.map(({ group }) => group) ?? this.#hub.groupsOf(event)
    return groups.every((group) => {
      const found = parked.find({ event, group, key })
      return found !== undefined && found.replay !== seq
    })
  }
}
