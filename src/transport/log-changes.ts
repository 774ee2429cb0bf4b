/** What has become of stored events, for one commit. Each change may be made twice. */
export interface LogChanges {
  /** Positions of events that everybody is done with. */
  forget: number[]
  /** Those of them that have rows in `heddle_delivery`. */
  split: number[]
  /** Deliveries that are done, while others of their events are not. */
  done: { seq: number; group: string }[]
  /** Deliveries that wait for another attempt, or for their first while another one of the event waits. */
  waiting: WaitingDelivery[]
  letters: DeadRow[]
  /** Replays of letters that have ended. */
  replayed: ReplayEnd[]
  /** On a server: positions of events that nobody here waits for any more, and others may deliver to the groups that they wait for. */
  released: number[]
  /** Groups that subscribe, as they are known from now on. */
  groups: GroupRow[]
}

/** A row of `heddle_group`. */
export interface GroupRow {
  event: string
  group: string
  /** When a process last had it, milliseconds since the epoch; null: it has left for good. */
  seenMs: number | null
}

/** The due time of a delivery that waits for its group to come. */
export const DUE_WITH_GROUP = -1

/** That of one that a thread has begun with before its event expired: it is made, however late. */
export const DUE_BEGUN = 1
/** Both. */
export const DUE_BEGUN_WITH_GROUP = -2

/** What has become of the replay of a letter. */
export interface ReplayEnd {
  /** Position of the event that the letter has become. */
  seq: number
  /** Why it has failed again, and the id of the new letter; null: it was handled. */
  error: string | null
  letter: string | null
}

export interface WaitingDelivery {
  seq: number
  group: string
  /** Number of the next attempt. */
  attempt: number
  deaths: number
  /** When it is made, milliseconds since the epoch; DUE_WITH_GROUP, DUE_BEGUN_WITH_GROUP: when its group is here; DUE_BEGUN: now. */
  dueMs: number
  /** Why the attempt before has failed; empty before the first. */
  error: string
  /** True when it is read that a thread has begun with it in time. */
  isBegun?: boolean
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
