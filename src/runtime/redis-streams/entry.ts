// Entries of streams: events as Redis stores them.
import { ancestorsIn } from '../../core/causality/ancestors.ts'
import { NO_TRACE_CONTEXT, traceContextOf, traceparentOf, tracestateOf } from '../../core/causality/context.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

// Saved before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** The content of the envelope. Times are milliseconds since the epoch, by the publisher's clock. */
interface Envelope {
  id: string
  parent_id: string | null
  emitter: string
  request_id: string | null
  timestamp: number
  payload_keys: string[]
  /** Expiry of the event. */
  expires?: number
  /** REPLICA_ID of the publisher. */
  replica: string
  /** The publisher's span, in the format of W3C Trace Context; absent while tracing is off there. */
  traceparent?: string
  tracestate?: string
  /** The events above the parent: see ancestors.ts. */
  ancestors?: string
}

/** An entry as a thread reads it. */
export interface StreamEvent {
  frame: EventFrame
  expiresMs: number
  replica: string
  onlyGroup: string | null
  replyTo: string | null
}

/** Maximum number of remembered JSON texts that occur often: names of emitters, keys of events. */
const TEXTS_MAX = 1000
const names = new Map<string, string>()
const keyTexts = new Map<string, string>()

function remembered(texts: Map<string, string>, of: string, make: (of: string) => string): string {
  let text = texts.get(of)
  if (text === undefined) {
    text = make(of)
    if (texts.size >= TEXTS_MAX) texts.clear()
    texts.set(of, text)
  }
  return text
}

const nameText = (name: string): string => toJson(name)
const keysText = (keys: string): string => toJson(keys.split('\0'))

function traceText(traceContext: string): string {
  const tracestate = tracestateOf(traceContext)
  const state = tracestate === '' ? '' : `,"tracestate":${toJson(tracestate)}`
  return `,"traceparent":"${traceparentOf(traceContext)}"${state}`
}

/**
 * Returns an entry in the form of XADD: names and values of its fields, alternating.
 *
 *   e  the envelope, JSON
 *   p  the payload, JSON
 *   o  the only group that handles it (a replay); every other group acknowledges it at once
 *   r  address of the reply: `<channel> <number>`
 *
 * The envelope is written without `JSON.stringify`: most of its text never changes.
 */
export function encodeEntry(frame: EventFrame, replica: string, replyTo: string | null): string[] {
  const { id, parentId, emitter, requestId, timestampMs, payloadKeys, ttlMs } = frame
  const keys = payloadKeys === '' ? '[]' : remembered(keyTexts, payloadKeys, keysText)
  let envelope =
    `{"id":"${id}","parent_id":${parentId === null ? 'null' : toJson(parentId)},` +
    `"emitter":${remembered(names, emitter, nameText)},"request_id":${requestId === null ? 'null' : toJson(requestId)},` +
    `"timestamp":${timestampMs},"payload_keys":${keys},"replica":${remembered(names, replica, nameText)}`
  if (frame.trace !== NO_TRACE_CONTEXT) envelope += traceText(frame.trace)
  if (frame.ancestors !== '') envelope += `,"ancestors":"${frame.ancestors}"`
  if (ttlMs !== 0) envelope += `,"expires":${timestampMs + ttlMs}`
  envelope += '}'
  return replyTo === null ? ['e', envelope, 'p', frame.payload] : ['e', envelope, 'p', frame.payload, 'r', replyTo]
}

/** @returns the event; a string with the reason when the entry is no event */
export function decodeEntry(event: string, fields: readonly string[]): StreamEvent | string {
  let envelopeText: string | undefined
  let payload: string | undefined
  let onlyGroup: string | null = null
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
      case 'r':
        replyTo = value
    }
  }
  if (envelopeText === undefined) return 'it has no envelope (field e)'
  if (payload === undefined) return 'it has no payload (field p)'
  const envelope = readEnvelope(envelopeText)
  if (envelope === undefined) return 'its envelope is no JSON'
  // The thread that handles the payload parses it once. Here it only has to be an object.
  if (payload.charCodeAt(0) !== 0x7b) return 'its payload is no JSON object'
  if (typeof envelope !== 'object' || envelope === null) return 'its envelope is no JSON object'
  const { id, emitter, timestamp, payload_keys: keys } = envelope
  if (typeof id !== 'string' || !id.startsWith('evt_') || id.length > 64) return 'its envelope has no event id'
  if (typeof emitter !== 'string' || emitter.length > 1024) return 'its envelope has no emitter'
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp)) return 'its envelope has no timestamp'
  return {
    frame: {
      id,
      parentId: textOrNull(envelope.parent_id),
      ancestors: envelope.ancestors === undefined ? '' : ancestorsIn(envelope.ancestors),
      event,
      emitter,
      requestId: textOrNull(envelope.request_id),
      key: null,
      unique: null,
      shares: '',
      trace: traceContextOf(envelope.traceparent, envelope.tracestate),
      payloadKeys: Array.isArray(keys) && keys.every((each) => typeof each === 'string') ? keys.join('\0') : '',
      timestampMs: timestamp,
      delayMs: 0,
      ttlMs: 0,
      seq: 0,
      subscriber: 0,
      attempt: 0,
      beginBy: 0,
      payload,
    },
    expiresMs: typeof envelope.expires === 'number' ? envelope.expires : 0,
    replica: typeof envelope.replica === 'string' ? envelope.replica : '',
    onlyGroup,
    replyTo,
  }
}

/** The envelope as `encodeEntry` writes it, without the rare cases: strings with an escape, lifetimes. */
const USUAL =
  /^\{"id":"([^"\\]*)","parent_id":(?:null|"([^"\\]*)"),"emitter":"([^"\\]*)","request_id":(?:null|"([^"\\]*)"),"timestamp":(\d+),"payload_keys":(\[[^\]\\]*\]),"replica":"([^"\\]*)"(?:,"traceparent":"([^"\\]*)")?(?:,"ancestors":"([^"\\]*)")?\}$/

/** @returns undefined when the text is not JSON, null when it is no object */
function readEnvelope(text: string): Partial<Envelope> | null | undefined {
  const usual = USUAL.exec(text)
  const keyList = usual === null ? null : keysOf(usual[6]!)
  if (usual !== null && keyList !== null) {
    const [, id, parentId, emitter, requestId, timestamp, , replica, traceparent, ancestors] = usual
    return {
      id: id!,
      parent_id: parentId ?? null,
      emitter: emitter!,
      request_id: requestId ?? null,
      timestamp: Number(timestamp),
      payload_keys: keyList,
      replica: replica!,
      traceparent: traceparent ?? '',
      ...(ancestors === undefined ? {} : { ancestors }),
    }
  }
  try {
    const envelope: unknown = parseJson(text)
    return typeof envelope === 'object' ? envelope : null
  } catch {
    return undefined
  }
}

const keyLists = new Map<string, string[]>()

/** Payloads of one event mostly have the same keys. @returns null when the text is not JSON */
function keysOf(text: string): string[] | null {
  let keys = keyLists.get(text)
  if (keys === undefined) {
    try {
      keys = parseJson(text) as string[]
    } catch {
      return null
    }
    if (keyLists.size >= TEXTS_MAX) keyLists.clear()
    keyLists.set(text, keys)
  }
  return keys
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value.length <= 1024 ? value : null)
