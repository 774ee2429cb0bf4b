// Handles replayed and deleted dead letters: their rows and their keys.
import type { Queryable } from '../../contracts/db.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Groups } from './groups.ts'
import type { Hand } from './hand.ts'
import type { Membership } from './membership.ts'
import type { Reader } from './reader.ts'
import type { RowCount } from './row-count.ts'
import type { SqlStore } from './sql-store.ts'

/** Maximum number of replayed or deleted dead letters to remember. */
const RELEASED_MAX = 1000

export interface ReplaysParts {
  store: SqlStore
  groups: Groups
  reader: Reader
  hand: Hand
  rows: RowCount
  clock: Clock
  /** Null on SQLite. */
  members: Membership | null
}

export class Replays {
  readonly #parts: ReplaysParts
  /** Recently replayed or deleted dead letters. */
  readonly #released = new Set<string>()
  /** Places of dead letters with a running replay. */
  readonly #places = new Map<string, number>()

  constructor(parts: ReplaysParts) {
    this.#parts = parts
  }

  /** True for a dead letter that a read of blocked keys may still return. */
  isReleased(deadLetter: string): boolean {
    return this.#released.has(deadLetter)
  }

  /** Returns the key of a dead letter and the number of rows blocked by it. */
  async waitingFor(event: string, group: string, key: string): Promise<{ key: string; waiting: number } | object> {
    const { groups, store } = this.#parts
    const id = groups.idOf(event, group)
    return id === undefined ? {} : { key, waiting: await store.countOfKey(id, key) }
  }

  /** Makes a dead letter a row of its group again, at its old place. @returns the number of the row; null if the group is unknown */
  async moveIn(tx: Queryable, deadLetter: string, group: string, frame: EventFrame): Promise<number | null> {
    const { groups, store, clock } = this.#parts
    const id = groups.idOf(frame.event, group)
    if (id === undefined) return null
    const { seq, place } = await store.moveIn(tx, deadLetter, id, frame, clock.nowMs())
    this.#places.set(deadLetter, place)
    return seq
  }

  /** The replay is committed. */
  begun(deadLetter: string, event: string, group: string, key: string | null, seq: number): void {
    const { groups, rows, members, reader, hand, clock } = this.#parts
    const id = groups.idOf(event, group)
    const place = this.#places.get(deadLetter) ?? 0
    this.#places.delete(deadLetter)
    if (id === undefined) return
    this.#release(deadLetter)
    rows.add(1)
    reader.unpark(id, deadLetter)
    if (members === null) {
      hand.replaying(seq, clock.nowMs())
      return reader.back(id, place, key)
    }
    // If this process owns the slot, it reads the row at once; otherwise it notifies the owner.
    members.doorbell.deadLetters()
    reader.late(id, place, key)
    reader.rangGroup(id)
  }

  /** A dead letter is deleted. */
  deleted(deadLetter: string, event: string, group: string): void {
    const { groups, rows, members, reader } = this.#parts
    const id = groups.idOf(event, group)
    this.#release(deadLetter)
    members?.doorbell.deadLetters()
    if (id === undefined) return
    reader.unpark(id, deadLetter)
    rows.tell()
  }

  #release(deadLetter: string): void {
    if (this.#released.size >= RELEASED_MAX) this.#released.clear()
    this.#released.add(deadLetter)
  }
}
