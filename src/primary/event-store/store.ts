// The rows of stored events for the reader: pages of a group or a key, in order.
import type { Awaitable } from '../../contracts/common.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { OwnedSlot } from './slots.ts'
import type { ShareAsk } from './turns.ts'

/** A row of the store: one event for one group. */
export interface StoredDelivery {
  /** Number of the row, never reused. */
  readonly seq: number
  /** Its place in the order of the group. */
  readonly place: number
  /** The publishing thread. */
  readonly thread: number
  /** Its payload is a string of bytes: see `asBytes`. */
  readonly event: EventFrame
  /** Milliseconds since the epoch; 0: never. */
  readonly expiresMs: number
  /** Number of the next attempt. */
  readonly attempt: number
  /** Known crashes of threads and processes during the delivery. */
  readonly deaths: number
  /** Error of the previous attempt; empty before the first. */
  readonly error: string
  /** A handler has begun it: it no longer expires. */
  readonly isBegun: boolean
  /** Time of the next attempt, milliseconds since the epoch; 0: at once. */
  readonly retryMs: number
  /** Crashes of processes that may have had it in hand. */
  readonly crashes: number
  /** On a server: its slot. */
  readonly slot?: OwnedSlot | undefined
  /** On a server: start of the replay, if it is one, milliseconds since the epoch. */
  readonly replayedMs?: number | undefined
  /** On a server: an older row of its key has no groups yet, and comes late. */
  readonly waits?: boolean | undefined
}

/** A row without a delivery, and the reason. */
export interface MalformedRow {
  readonly seq: number
  readonly place: number
  readonly fault: string
}

export const isMalformed = (row: StoredDelivery | MalformedRow): row is MalformedRow => 'fault' in row

export type Page = readonly (StoredDelivery | MalformedRow)[]

/** A page of a group. */
export interface GroupPage {
  readonly rows: Page
  /** Of a short page: the place up to which this process can read no other row, now or later; 0: unknown. */
  readonly readTo: number
}

/** Reads ready rows in order. */
export interface DeliveryStore {
  /** Returns the next rows of a group after a place, at most `limit`. @param areTurnsTaken only those without a share */
  readGroup(group: number, after: number, limit: number, areTurnsTaken: boolean): Awaitable<GroupPage>
  /** Does the same for one key. @param key as its column stores it */
  readKey(group: number, key: string, after: number, limit: number): Awaitable<Page>
  /**
   * Returns the next shares of a group that have ready rows, by priority, in an order of the store.
   * @param after by priority: a share; empty: the first ones
   * @param limit of each priority
   */
  nextShares(group: number, after: readonly string[], limit: number): Awaitable<string[][]>
  /** Returns rows among the first 1,024 of each share: of each key only the first, and none of blocked keys. */
  readShares(group: number, asks: readonly ShareAsk[]): Awaitable<Page>
  /** Returns the place of the last of these 1,024 rows of a share; 0 if it has fewer. */
  passShare(group: number, ask: ShareAsk): Awaitable<number>
  /** Returns the shares of the first rows of keys; empty: it has none. Keys without rows are left out. */
  sharesOfKeys(group: number, keys: readonly string[]): Awaitable<{ key: string; share: string }[]>
  /** From now on each row of the group has a share. */
  takeTurns(group: number): Awaitable<void>
}
