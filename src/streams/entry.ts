import type { EventFrame } from '../frames/event-frame.ts'

/**
 * One entry of a stream, as XADD takes it: field and value in turns.
 *
 *   e  the envelope, JSON
 *   p  the payload, JSON
 *   o  a group: for this one alone, every other acknowledges it unseen (a replay)
 *   a  entry id of the event before it with the same ordering key
 *   r  where a reply goes: `<channel> <number>`
 */
export type EntryFields = string[]

/** What the envelope holds. Times are milliseconds since the epoch, of the publisher's clock. */
interface Envelope {
  id: string
  parent_id: string | null
  emitter: string
  request_id: string | null
  timestamp: number
  payload_keys: string[]
  key?: string
  /** Not delivered any more from here on. */
  expires?: number
  /** REPLICA_ID of the publisher. */
  replica: string
}

/** An entry as a thread has read it. */
export interface StreamEvent {
  /** The stream's own id of the entry, `<milliseconds>-<number>`. */
  entryId: string
  frame: EventFrame
  expiresMs: number
  replica: string
  onlyGroup: string | null
  after: string | null
  replyTo: string | null
}

export function encodeEntry(frame: EventFrame, replica: string, replyTo: string | null): EntryFields {
  const { ttlMs, delayMs, key, payloadKeys } = frame
  const envelope: Envelope = {
    id: frame.id,
    parent_id: frame.parentId,
    emitter: frame.emitter,
    request_id: frame.requestId,
    timestamp: frame.timestampMs,
    payload_keys: payloadKeys === '' ? [] : payloadKeys.split('\0'),
    replica,
  }
  if (key !== null) envelope.key = key
  if (ttlMs !== 0) envelope.expires = frame.timestampMs + delayMs + ttlMs
  const fields = ['e', JSON.stringify(envelope), 'p', frame.payload]
  if (replyTo !== null) fields.push('r', replyTo)
  return fields
}

/** @returns why it is no event of ours, when it is not */
export function decodeEntry(event: string, entryId: string, fields: readonly string[]): StreamEvent | string {
  let envelopeText: string | undefined
  let payload: string | undefined
  let onlyGroup: string | null = null
  let after: string | null = null
  let replyTo: string | null = null
  for (let n = 0; n + 1 < fields.length; n += 2) {
    const value = fields[n + 1]!
    switch (fields[n]) {
      case 'e':
        envelopeText = value
        break
      case 'p':
        payload = value
        break
      case 'o':
        onlyGroup = value
        break
      case 'a':
        after = value
        break
      case 'r':
        replyTo = value
    }
  }
  if (envelopeText === undefined) return 'it has no envelope (field e)'
  if (payload === undefined) return 'it has no payload (field p)'
  let envelope: Partial<Envelope> | null
  try {
    envelope = JSON.parse(envelopeText) as Partial<Envelope> | null
  } catch {
    return 'its envelope is no JSON'
  }
  // The payload is parsed where it is handled, once; a lane that cannot must know before it begins.
  if (payload.charCodeAt(0) !== 0x7b) return 'its payload is no JSON object'
  if (typeof envelope !== 'object' || envelope === null) return 'its envelope is no JSON object'
  const { id, emitter, timestamp, payload_keys: keys } = envelope
  if (typeof id !== 'string' || !id.startsWith('evt_') || id.length > 64) return 'its envelope has no event id'
  if (typeof emitter !== 'string' || emitter.length > 1024) return 'its envelope has no emitter'
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp)) return 'its envelope has no timestamp'
  return {
    entryId,
    frame: {
      id,
      parentId: textOrNull(envelope.parent_id),
      event,
      emitter,
      requestId: textOrNull(envelope.request_id),
      key: null,
      payloadKeys: Array.isArray(keys) ? keys.join('\0') : '',
      timestampMs: timestamp,
      delayMs: 0,
      ttlMs: 0,
      a: 0,
      b: 0,
      payload,
    },
    expiresMs: typeof envelope.expires === 'number' ? envelope.expires : 0,
    replica: typeof envelope.replica === 'string' ? envelope.replica : '',
    onlyGroup,
    after,
    replyTo,
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value.length <= 1024 ? value : null)
