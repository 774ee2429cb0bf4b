// Reading position of a group, and its blocked keys.
import type { GroupKind } from '../../transport/store-changes.ts'
import { Turns } from './turns.ts'

/** A group of the store. */
export interface Group {
  readonly id: number
  readonly event: string
  readonly name: string
  readonly kind: GroupKind | 'broker'
}

/**
 * ```
 *                rows may have come, the page was full or could not be read
 *      ┌────────────────────────────────────────────────┐
 *      │                                                ▼
 *   read ◄─────────────────────────────────────────── behind
 *    │ │             its page is being read             ▲ ▲
 *    │ └───► full      no more room in the hub ─────────┘ │     deliveries have ended
 *    └─────► trying    the next row is a suspect ─────────┘     it has run alone
 * ```
 * It begins `behind`. `read` is also a cursor with nothing left to read. `behind` goes to `full` without a page if there is no room, and `behind` and
 * `full` go to `full` and `trying` by a page of a key, too, or if rows have come during the page. A suspect that has not ended after 10 s, or was not
 * handed out, no longer keeps its cursor `trying`.
 */
export type CursorState = 'read' | 'behind' | 'full' | 'trying'

/**
 * ```
 *            more rows than may be in hand                  a page of the key is short
 *   open ───────────────────────────────────────► behind ───────────────────────────► open
 *     │                                            ▲  │
 *     │ a delivery is a dead letter                │  │ a delivery is a dead letter
 *     └────────────────► parked ───────────────────┘◄─┘
 *                                the dead letter is replayed or deleted
 * ```
 * `open` is `behind`, too, if a row of it returns or becomes visible late, and `parked` if the table has a dead letter that blocks it when its slot is
 * taken. With several dead letters it goes on after the last. When the slot goes, each is `open`.
 */
export type KeyState = 'open' | 'behind' | 'parked'

export interface RowInHand {
  readonly seq: number
  readonly share: string
  readonly key: string | null
  /** False: its outcome is not committed yet. */
  readonly isInHub: boolean
}

/** A key with deliveries in hand, or a blocked key. */
export interface Key {
  readonly key: string
  /** On a server: the slot of its rows; -1 elsewhere. */
  slot: number
  state: KeyState
  /** Deliveries in hand. */
  inHand: number
  /** The row of the key in a handler; 0: none. */
  running: number
  /** The last row that was not begun because of it: each is reported once. */
  refused: number
  /** Rows of the key up to this place have been handed out. */
  last: number
  /** Ids of the dead letters blocking it. */
  readonly deadLetters: Set<string>
  /** Number of rows skipped while it is blocked, and the place of the last one: a row read again counts once. */
  waiting: number
  waitingTo: number
}

/** Backlog behind dead letters. */
export interface Parked {
  keys: number
  /** Known number of skipped rows. */
  rows: number
}

/** Reading position of one group. */
export class Cursor {
  readonly group: Group
  state: CursorState = 'behind'
  /** Last place read: rows up to it are in hand, settled, or of blocked keys. */
  after = 0
  /** The same for the page being read: `after` may go back meanwhile. */
  reading = 0
  /** Grows when a row returns: a page being read may lack it. */
  version = 0
  /** Rows in the hub, and the bytes of their payloads. */
  inHand = 0
  bytes = 0
  /** The shares of its rows; null if they take no turns. */
  turns: Turns | null = null
  /** Average payload of a row in the last page, bytes. */
  rowBytes = 0
  readonly keys = new Map<string, Key>()
  /** Keys in state `parked`. */
  readonly parked = new Set<Key>()
  /** Keys in state `behind`. */
  readonly behind = new Set<Key>()
  /** Dead letters blocking keys. */
  readonly #byDeadLetter = new Map<string, Key>()
  /** Backlog of all groups, for the limits of publishers. */
  #total: Parked

  constructor(group: Group, total: Parked) {
    this.group = group
    this.#total = total
  }

  /** From now on shares take turns. */
  takeTurns(inHand: Iterable<RowInHand>): void {
    this.turns = new Turns()
    for (const { share, seq, key, isInHub } of inHand) this.turns.given(share, seq, key, isInHub)
  }

  keyOf(key: string): Key {
    let found = this.keys.get(key)
    if (found === undefined) {
      found = {
        key,
        slot: -1,
        state: 'open',
        inHand: 0,
        running: 0,
        refused: 0,
        last: 0,
        deadLetters: new Set(),
        waiting: 0,
        waitingTo: 0,
      }
      this.keys.set(key, found)
    }
    return found
  }

  /** A row of a key has returned. @param place of the row */
  lower(name: string | null, place: number): void {
    const key = name === null ? undefined : this.keys.get(name)
    if (key !== undefined && key.last >= place) key.last = place - 1
  }

  /** Rows of the key were skipped: they are read by their key. */
  fallBehind(key: Key): void {
    if (this.parked.delete(key)) {
      this.#total.keys--
      this.#total.rows -= key.waiting
    }
    key.state = 'behind'
    key.waiting = 0
    key.waitingTo = 0
    this.behind.add(key)
  }

  /** A row of a parked key is left out. */
  leftOut(key: Key, place: number): void {
    if (place <= key.waitingTo) return
    key.waitingTo = place
    key.waiting++
    this.#total.rows++
  }

  /** The group has no subscriber: its backlog no longer counts. */
  retire(): void {
    this.#total.keys -= this.parked.size
    for (const { waiting } of this.parked) this.#total.rows -= waiting
    this.#total = { keys: 0, rows: 0 }
  }

  caughtUp(key: Key): void {
    key.state = 'open'
    this.behind.delete(key)
    this.forgetIfIdle(key)
  }

  /** @param place of the dead letter, used again by its replay */
  park(key: Key, deadLetter: string, place: number): void {
    key.state = 'parked'
    key.deadLetters.add(deadLetter)
    this.#byDeadLetter.set(deadLetter, key)
    key.last = Math.min(key.last, place - 1)
    if (!this.parked.has(key)) this.#total.keys++
    this.parked.add(key)
    this.behind.delete(key)
  }

  /** A dead letter is replayed or deleted. @returns true if this unblocks a key */
  unpark(deadLetter: string): boolean {
    const key = this.#byDeadLetter.get(deadLetter)
    if (key === undefined) return false
    this.#byDeadLetter.delete(deadLetter)
    key.deadLetters.delete(deadLetter)
    if (key.state !== 'parked' || key.deadLetters.size > 0) return false
    this.fallBehind(key)
    return true
  }

  /** Another process has the slot: its keys are loaded again when it returns. Rows in hand still count. */
  dropKeysOf(slot: number): void {
    for (const key of this.keys.values()) {
      if (key.slot !== slot) continue
      if (this.parked.delete(key)) {
        this.#total.keys--
        this.#total.rows -= key.waiting
      }
      for (const deadLetter of key.deadLetters) this.#byDeadLetter.delete(deadLetter)
      key.deadLetters.clear()
      key.state = 'open'
      key.last = key.waiting = key.waitingTo = 0
      this.behind.delete(key)
      this.forgetIfIdle(key)
    }
  }

  forgetIfIdle(key: Key): void {
    if (key.inHand === 0 && key.state === 'open') this.keys.delete(key.key)
  }
}
