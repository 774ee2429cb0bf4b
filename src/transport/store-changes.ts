/** Kind of a group. `broadcast` and `temporary` end with their process; `temporary` stands for all subscribers of an event after the boot. */
export type GroupKind = 'group' | 'broadcast' | 'temporary'

/** A row of `heddle_group`. */
export interface GroupRow {
  id: number
  event: string
  /** Name of the group; empty for all temporary subscribers of the event together. */
  group: string
  kind: GroupKind
  /** When a process last had it, milliseconds since the epoch; null: delete the group and its rows. */
  seenMs: number | null
}

/** Note about a delivery that has not ended. */
export interface NotedDelivery {
  seq: number
  /** Number of the next attempt. */
  attempt: number
  deaths: number
  /** Error of the attempt before; empty before the first. */
  error: string
  /** True if a handler has begun it: it no longer expires. */
  isBegun: boolean
  /** When the next attempt of a delivery that keeps its place is due, milliseconds since the epoch; 0: at once. */
  retryMs: number
  /** Above 0: it leaves the order and joins its end when it is due, milliseconds since the epoch. */
  dueMs: number
}

/** Outcomes of deliveries, for one commit. Each change may be made twice. */
export interface StoreChanges {
  /** Rows of deliveries that have ended. */
  done: number[]
  noted: NotedDelivery[]
  /** Rows that a handler begins: no other of their groups waits behind them under the same `unique`. */
  begun: number[]
  /** Dead letters with the number and the place of the row that each replaces; 0: none. */
  deadLetters: { row: DeadRow; seq: number; place: number }[]
  /** Replays of dead letters that have ended. */
  replayed: ReplayEnd[]
  groups: GroupRow[]
  /** Moves the rows that are due by then to the end of the order, milliseconds since the epoch; 0: none. */
  promoteMs: number
  /** On a server: the slots that the process must still own. */
  fences?: Fences
}

/** The slots of the changed rows. Only the owner of a slot changes its rows. */
export interface Fences {
  /** The process that writes. */
  member: number
  slots: FencedSlot[]
}

/** A slot, the epoch in which the process took it, and the changed rows in it. */
export interface FencedSlot {
  group: number
  slot: number
  epoch: number
  seqs: number[]
}

/** Answer of the database. */
export interface StoreAnswer {
  /** Groups of the rows that were moved to the end of the order. */
  promoted: number[]
  /** Those that were to be begun, and are there and due. */
  begun?: BegunRow[]
  /** Indexes of the fenced slots that another process has: none of their rows were written. */
  lost?: number[]
  /** On a file: dead letters that were to block their keys, and were not stored: their rows were taken back before. */
  unstored?: string[]
}

/** A row that a handler begins, as it is then. */
export interface BegunRow {
  seq: number
  envelope: string
  payload: string
  /** Milliseconds since the epoch; 0: never. */
  expiresMs: number
}

/** Outcome of the replay of a dead letter. */
export interface ReplayEnd {
  /** The row that the dead letter has become. */
  seq: number
  /** Error and id of the new dead letter; null: it was handled. */
  error: string | null
  letter: string | null
}

/** A dead letter as it is stored. */
export interface DeadRow {
  id: string
  eventId: string
  event: string
  group: string
  subscriber: string
  key: string | null
  envelope: string
  payload: string
  error: string
  attempts: number
  /** Crash report as JSON; null: no thread died of it. */
  blackBox: string | null
  /** True if later events of its key wait for it. */
  isParked: boolean
  bytes: number
  atMs: number
}
