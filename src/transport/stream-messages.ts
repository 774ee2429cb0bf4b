/** What the coordinator of the streams and a thread that reads them say to each other. Both unions are discriminated by `kind`. */
import type { DeliverySpan } from '../contracts/tracing.ts'
import type { EventFrame } from './frames/event-frame.ts'

/** From the coordinator to a thread that reads. */
export type StreamCommand =
  /** Read the streams as this consumer: when there is something, and as long as there is. */
  | { kind: 'start'; consumer: string }
  /** A group is there and may be read. */
  | { kind: 'open'; event: string; group: string }
  | { kind: 'wake'; event: string }
  /** Read the group no more, since so many of its events have failed and are tried again; or read it again. */
  | { kind: 'hold'; event: string; group: string; isHeld: boolean }
  /** The subscribers of a plugin get nothing new, or get events again. */
  | { kind: 'pause'; plugin: string; isPaused: boolean }
  /** Read nothing more, and report when no entry is pending any more. */
  | { kind: 'stop' }

/** From a thread that reads to the coordinator. */
export type StreamReport =
  /** All up to this entry is read: wake this thread for the next. */
  | { kind: 'idle'; event: string; upTo: string }
  /** There is more than this thread reads at a time. */
  | { kind: 'more'; event: string }
  /** It has no room for more entries and reads no more; or it has room again and reads on. */
  | { kind: 'full'; event: string; isFull: boolean }
  | { kind: 'hand-over'; handOver: StreamHandOver }
  /** An event was published that is to be delivered later. */
  | { kind: 'delayed'; delayMs: number }
  /** It has no pending entry any more, and reads nothing. */
  | { kind: 'stopped' }

/** An event of a stream that the thread which read it does not finish itself. */
export interface StreamHandOver {
  event: string
  /** Consumer group of the stream. */
  group: string
  /** The subscriber's number in the thread; -1 when it has left. */
  subscriberIndex: number
  /** The stream's id of the entry. */
  entryId: string
  /** Null for an entry that is no event. */
  frame: EventFrame | null
  /** Where a reply goes; null when nobody waits for one. */
  replyTo: string | null
  /** Why the first attempt has failed, or why it is no event; null when none was made. */
  fault: string | null
  /** True when the subscriber has said that no further attempt can help. */
  isUnrecoverable: boolean
  /** When the event expires if no handler has begun it, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** Of the delivery, when it has begun and is traced. */
  span: DeliverySpan | null
}
