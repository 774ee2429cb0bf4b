// The rows of stored events, as the reader gets them: pages of a group or a key, in order.
import type { Awaitable } from '../../contracts/common.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { OwnedSlot } from './slots.ts'

/** One event for one group, as its row has it. */
export interface StoredDelivery {
  /** Number of the row, never reused. */
  readonly seq: number
  /** Its place in the order of the group. */
  readonly place: number
  /** Thread that published it. */
  readonly thread: number
  /** Its payload is a string of bytes: see `asBytes`. */
  readonly event: EventFrame
  /** Milliseconds since the epoch; 0: never. */
  readonly expiresMs: number
  /** Number of the next attempt. */
  readonly attempt: number
  /** Threads and processes known to have died while they handled it. */
  readonly deaths: number
  /** Why the attempt before has failed; empty before the first. */
  readonly error: string
  /** A handler has begun it: it no longer expires. */
  readonly isBegun: boolean
  /** When the next attempt is due, milliseconds since the epoch; 0: at once. */
  readonly retryMs: number
  /** Processes that crashed while they may have had it in hand. */
  readonly crashes: number
  /** On a server: its slot. */
  readonly slot?: OwnedSlot | undefined
  /** On a server: since when it is the replay of a dead letter, milliseconds since the epoch. */
  readonly replayedMs?: number | undefined
  /** On a server: an older row of its key has no groups yet, and comes late. */
  readonly waits?: boolean | undefined
}

/** A row that holds no delivery, with the reason. */
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
  /** When the page is short: up to this place there is no other row that this process may read, and none will come; 0: nobody knows. */
  readonly readTo: number
}

/** Reads ready rows in order. */
export interface DeliveryStore {
  /** Returns the next rows of a group after a place, at most `limit`. */
  readGroup(group: number, after: number, limit: number): Awaitable<GroupPage>
  /** Does the same for one key. @param key as its column stores it */
  readKey(group: number, key: string, after: number, limit: number): Awaitable<Page>
}
