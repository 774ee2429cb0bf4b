/** What a group is. `broadcast` and `temporary` end with their process; `temporary` is all later subscribers of an event together. */
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

/** What is written of a delivery that has not ended. */
export interface NotedDelivery {
  seq: number
  /** Number of the next attempt. */
  attempt: number
  deaths: number
  /** Why the attempt before has failed; empty before the first. */
  error: string
  /** A handler has begun it: it no longer expires. */
  isBegun: boolean
  /** When the next attempt is due of a delivery that keeps its place, milliseconds since the epoch; 0: at once. */
  retryMs: number
  /** Above 0: it leaves the order until then, and joins the end of the order when it is due, milliseconds since the epoch. */
  dueMs: number
}

/** Outcomes of deliveries, for one commit. Each change may be made twice. */
export interface StoreChanges {
  /** Rows of deliveries that have ended. */
  done: number[]
  noted: NotedDelivery[]
  /** Each with the number and the place of the row it replaces; 0: none. */
  deadLetters: { row: DeadRow; seq: number; place: number }[]
  /** Replays of dead letters that have ended. */
  replayed: ReplayEnd[]
  groups: GroupRow[]
  /** Moves the rows that are due by then to the end of the order, milliseconds since the epoch; 0: none. */
  promoteMs: number
  /** On a server: by which right. */
  fences?: Fences
}

/** Only the owner of a slot changes its rows. */
export interface Fences {
  /** The process that writes. */
  member: number
  slots: FencedSlot[]
}

/** A slot, the epoch of the process that has it, and which rows of the changes are in it. */
export interface FencedSlot {
  group: number
  slot: number
  epoch: number
  seqs: number[]
}

/** What the database has answered. */
export interface StoreAnswer {
  /** Groups of the rows that were moved to the end of the order. */
  promoted: number[]
  /** Which of the fenced slots are another process's: nothing of their rows was written. */
  lost?: number[]
}

/** What has become of the replay of a dead letter. */
export interface ReplayEnd {
  /** The row that the dead letter has become. */
  seq: number
  /** Why it has failed again, and the id of the new dead letter; null: it was handled. */
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
  /** JSON; null: no thread died of it. */
  blackBox: string | null
  /** What follows with its key waits for it. */
  isParked: boolean
  bytes: number
  atMs: number
}
