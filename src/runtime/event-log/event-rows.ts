import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Columns of a new row, in the order of `pushRow`. */
export const EVENT_COLUMNS = ['seq', 'id', 'event', 'envelope', 'payload', 'key', 'due_ms', 'expires_ms'] as const

/** The first so many are all that `pushPlainRow` adds. */
export const PLAIN_COLUMNS = 5

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
  /** Processes that have ended without order while they had it; counted on a server, and read with what they have left. */
  recovered?: number
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

/** JSON texts that occur often, at most so many: names of emitters, keys of events. */
const TEXTS_MAX = 1000
const texts = new Map<string, string>()

function jsonOf(text: string): string {
  let json = texts.get(text)
  if (json === undefined) {
    json = toJson(text)
    if (texts.size >= TEXTS_MAX) texts.clear()
    texts.set(text, json)
  }
  return json
}

type InEnvelope = Pick<EventFrame, 'parentId' | 'requestId' | 'trace' | 'emitter' | 'timestampMs' | 'payloadKeys'>

/** What the last envelope was made of: events that one handler publishes within a millisecond have the same. */
let last: InEnvelope | null = null
let lastEnvelope = ''

export function envelopeOf({ parentId, requestId, trace, emitter, timestampMs, payloadKeys }: EventFrame): string {
  if (
    last === null ||
    last.timestampMs !== timestampMs ||
    last.requestId !== requestId ||
    last.parentId !== parentId ||
    last.trace !== trace ||
    last.emitter !== emitter ||
    last.payloadKeys !== payloadKeys
  ) {
    last = { parentId, requestId, trace, emitter, timestampMs, payloadKeys }
    lastEnvelope = writtenEnvelope(last)
  }
  return lastEnvelope
}

/** Written by hand: most of its text is the same each time. */
function writtenEnvelope({ parentId, requestId, trace, emitter, timestampMs, payloadKeys }: InEnvelope): string {
  const parent = parentId === null ? 'null' : `"${parentId}"`
  // A request's id may come from outside.
  const request = requestId === null ? 'null' : toJson(requestId)
  const span = trace === '' ? '""' : toJson(trace)
  return `[${parent},${request},${span},${jsonOf(emitter)},${timestampMs},${jsonOf(payloadKeys)}]`
}

/** Adds the columns of a new row. @param frame its payload is text */
export function pushRow(params: SqlValue[], frame: EventFrame): void {
  const { timestampMs, delayMs, ttlMs, key } = frame
  params.push(
    frame.seq,
    frame.id,
    frame.event,
    envelopeOf(frame),
    frame.payload,
    keyColumnOf(key),
    delayMs === 0 ? 0 : Math.ceil(timestampMs + delayMs),
    ttlMs === 0 ? 0 : Math.ceil(timestampMs + delayMs + ttlMs),
  )
}

/** The other columns of such a row are the same each time. */
export const isPlain = ({ key, delayMs, ttlMs }: EventFrame): boolean => key === null && delayMs === 0 && ttlMs === 0

/** Adds the first columns of the row of a plain event. @param frame its payload is text */
export function pushPlainRow(params: SqlValue[], frame: EventFrame): void {
  params.push(frame.seq, frame.id, frame.event, envelopeOf(frame), frame.payload)
}

/** As JSON: a key may have characters that a database does not store. */
export const keyColumnOf = (key: string | null): string | null => (key === null ? null : toJson(key))

/** The key of such a column. @throws an error that says so when it is none */
export function keyOf(column: string | null): string | null {
  if (column === null) return null
  const key = parsed(column)
  if (typeof key === 'string') return key
  throw new Error('its key is no JSON string')
}

/** The envelope of an event of which nothing is known. */
export const EMPTY_ENVELOPE = '[null,null,"","",0,""]'

/** Undefined for what is no JSON: others may have written it. */
function parsed(column: unknown): unknown {
  try {
    return parseJson(column as string)
  } catch {
    return undefined
  }
}

function partsOf(column: string): Envelope {
  const parts = parsed(column)
  const isEnvelope = Array.isArray(parts) && parts.length === KINDS.length
  if (isEnvelope && KINDS.every((kinds, n) => kinds.includes(kindOf(parts[n])))) return parts as Envelope
  throw new Error('its envelope is none')
}

const kindOf = (part: unknown): string => (part === null ? 'null' : typeof part)
/** By part of an envelope. */
const KINDS: readonly (readonly string[])[] = [
  ['string', 'null'],
  ['string', 'null'],
  ['string'],
  ['string'],
  ['number'],
  ['string'],
]

/**
 * The event of a row; its payload is text. What is left of its delay and of its lifetime is as of now.
 * @throws an error that says so when it holds none
 */
export function frameOf(row: Pick<EventRow, 'seq' | 'id' | 'event' | 'envelope' | 'payload' | 'key'>): EventFrame {
  const [parentId, requestId, trace, emitter, timestampMs, payloadKeys] = partsOf(row.envelope)
  return {
    id: row.id,
    parentId,
    event: row.event,
    emitter,
    requestId,
    key: keyOf(row.key),
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
