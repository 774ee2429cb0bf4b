import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

/** Columns of a new row, in the order of `rowOf`. */
export const EVENT_COLUMNS = ['seq', 'id', 'event', 'envelope', 'payload', 'key', 'due_ms', 'expires_ms'] as const

/** A row of `heddle_event`. */
export interface EventRow {
  seq: number
  id: string
  event: string
  envelope: string
  payload: string
  key: string | null
  due_ms: number
  expires_ms: number
  is_split: number
  recovered: number
}

/** What an event is beside its columns: parent, request, trace, emitter, time of publication, payload keys. A JSON array keeps it short. */
type Envelope = [
  parentId: string | null,
  requestId: string | null,
  trace: string,
  emitter: string,
  timestampMs: number,
  payloadKeys: string,
]

export function envelopeOf(frame: EventFrame): string {
  const { parentId, requestId, trace, emitter, timestampMs, payloadKeys } = frame
  const envelope: Envelope = [parentId, requestId, trace, emitter, timestampMs, payloadKeys]
  return JSON.stringify(envelope)
}

/** @param frame its payload is text */
export function rowOf(frame: EventFrame): SqlValue[] {
  const { timestampMs, delayMs, ttlMs } = frame
  const dueMs = delayMs === 0 ? 0 : timestampMs + delayMs
  return [
    frame.seq,
    frame.id,
    frame.event,
    envelopeOf(frame),
    frame.payload,
    frame.key,
    dueMs,
    ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs,
  ]
}

/** The event of a row; its payload is text. What is left of its delay and of its lifetime is as of now. */
export function frameOf(row: Pick<EventRow, 'seq' | 'id' | 'event' | 'envelope' | 'payload' | 'key'>): EventFrame {
  const [parentId, requestId, trace, emitter, timestampMs, payloadKeys] = JSON.parse(row.envelope) as Envelope
  return {
    id: row.id,
    parentId,
    event: row.event,
    emitter,
    requestId,
    key: row.key,
    trace,
    payloadKeys,
    timestampMs,
    delayMs: 0,
    ttlMs: 0,
    seq: Number(row.seq),
    subscriber: 0,
    attempt: 0,
    payload: row.payload,
  }
}
