/// <reference lib="es2024.string" />

// Converts events to columns and back, and builds statements for many rows.
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import { type Lineage, lineageOf, lineageText } from '../../core/causality/ancestors.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { NORMAL_SHARE, OTHERS } from '../events/shares.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** An event in the form of its row. */
export interface EventColumns {
  seq: number
  id: string
  event: string
  envelope: string
  payload: string
  key: string | null
}

/**
 * An event beside its columns: parent, request, trace, emitter, time of publication, payload keys. A JSON array keeps it short. Behind the parent, in the
 * same text, are the other events above it: releases that do not know them read them as a part of its id, and hand them on.
 */
type Envelope = [
  lineage: string | null,
  requestId: string | null,
  trace: string,
  emitter: string,
  timestampMs: number,
  payloadKeys: string,
]

/** Maximum number of remembered JSON texts that occur often: names of emitters, keys of events. */
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

type InEnvelope = Pick<
  EventFrame,
  'parentId' | 'ancestors' | 'requestId' | 'trace' | 'emitter' | 'timestampMs' | 'payloadKeys'
>

/** Input of the last envelope: events published by one handler within a millisecond have the same. */
let last: InEnvelope | null = null
let lastEnvelope = ''

export function envelopeOf(frame: EventFrame): string {
  const { parentId, ancestors, requestId, trace, emitter, timestampMs, payloadKeys } = frame
  if (
    last === null ||
    last.timestampMs !== timestampMs ||
    last.requestId !== requestId ||
    last.parentId !== parentId ||
    last.ancestors !== ancestors ||
    last.trace !== trace ||
    last.emitter !== emitter ||
    last.payloadKeys !== payloadKeys
  ) {
    last = { parentId, ancestors, requestId, trace, emitter, timestampMs, payloadKeys }
    lastEnvelope = writtenEnvelope(last)
  }
  return lastEnvelope
}

/** Written by hand: most of its text never changes. */
function writtenEnvelope(envelope: InEnvelope): string {
  const { parentId, requestId, trace, emitter, timestampMs, payloadKeys } = envelope
  const parent = parentId === null ? 'null' : toJson(lineageText(envelope))
  // A request's id may come from outside.
  const request = requestId === null ? 'null' : toJson(requestId)
  const span = trace === '' ? '""' : toJson(trace)
  return `[${parent},${request},${span},${jsonOf(emitter)},${timestampMs},${jsonOf(payloadKeys)}]`
}

/** Due time of an event, milliseconds since the epoch; 0: at once. A date is odd and stays when the clock is set; the end of a delay is even and moves. */
export function dueMsOf({ timestampMs, delayMs }: Pick<EventFrame, 'timestampMs' | 'delayMs'>): number {
  if (delayMs === 0) return 0
  const isDate = !Number.isInteger(delayMs)
  const dueMs = timestampMs + Math.trunc(delayMs)
  return dueMs % 2 === Number(isDate) ? dueMs : dueMs + 1
}

/** Time after which an event is not begun, milliseconds since the epoch; 0: none. */
export const expiresMsOf = ({ timestampMs, delayMs, ttlMs }: EventFrame): number =>
  ttlMs === 0 ? 0 : Math.ceil(timestampMs + delayMs + ttlMs)

/**
 * What the rows of events need: id, event, envelope and payload; also key, due time and expiry; also their shares. Most are plain, and a statement with
 * fewer columns is faster.
 */
export type RowForm = 'plain' | 'timed' | 'shared'

export function formOf(frames: readonly EventFrame[]): RowForm {
  if (frames.some(({ shares }) => shares !== '')) return 'shared'
  return frames.every(({ key, delayMs, ttlMs }) => key === null && delayMs === 0 && ttlMs === 0) ? 'plain' : 'timed'
}

/** SQL of the share of a row. @param shares the column with those of all groups; null: nobody asks @param group the row of `heddle_group` */
export function shareSql(dialect: 'sqlite' | 'postgres', shares: string | null, group: string): string {
  const unknown = `CASE WHEN ${group}.has_share = 1 THEN '${NORMAL_SHARE}' END`
  if (shares === null) return unknown
  const ofGroup =
    dialect === 'sqlite'
      ? `json_extract(${shares}, '$."' || ${group}.grp || '"'), json_extract(${shares}, '$."${OTHERS}"')`
      : `CAST(${shares} AS json) ->> ${group}.grp, CAST(${shares} AS json) ->> '${OTHERS}'`
  return `coalesce(${ofGroup}, ${unknown})`
}

/** From now on all rows of an event have shares: with others they would lose the order of their keys. */
export const HAS_SHARES = "UPDATE heddle_group SET has_share = 1 WHERE event = $1 AND has_share = 0 AND kind = 'group'"

export const sharesColumnOf = ({ shares }: EventFrame): string | null => (shares === '' ? null : shares)

/** Appends an event to the parameters of an INSERT. */
export function pushColumns(params: SqlValue[], frame: EventFrame, form: RowForm): void {
  params.push(frame.id, frame.event, envelopeOf(frame), frame.payload)
  if (form !== 'plain') params.push(keyColumnOf(frame.key), dueMsOf(frame), expiresMsOf(frame))
  if (form === 'shared') params.push(sharesColumnOf(frame))
}

/** True for an event no message broker gets: the store keeps its order and its time. */
export const staysInStore = ({
  key,
  delayMs,
  unique,
  shares,
}: Pick<EventFrame, 'key' | 'delayMs' | 'unique' | 'shares'>): boolean =>
  key !== null || delayMs > 0 || unique !== null || shares !== ''

/** As JSON: a key may have characters a database does not store. */
export const keyColumnOf = (key: string | null): string | null => (key === null ? null : toJson(key))

/** Returns the key of such a column. @throws an error with the reason if it holds none */
export function keyOf(column: string | null): string | null {
  if (column === null) return null
  const key = parsed(column)
  if (typeof key === 'string') return key
  throw new Error('its key is not a JSON string')
}

/** Returns the key of such a column, or null for a foreign value. */
export function keyIn(column: string | null): string | null {
  try {
    return keyOf(column)
  } catch {
    return null
  }
}

/** Errors of handlers may have characters no database takes. */
export const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\u{FFFD}')

/** The envelope of an unknown event. */
export const EMPTY_ENVELOPE = '[null,null,"","",0,""]'

/** Returns undefined if it is not JSON: others may have written it. */
function parsed(column: unknown): unknown {
  try {
    return parseJson(column as string)
  } catch {
    return undefined
  }
}

/** The last envelope read: events published by one handler within a millisecond have the same. */
let lastRead = ''
let lastParts: Readonly<Envelope>
let lastLineage: Lineage

function partsOf(column: string): Readonly<Envelope> {
  if (column === lastRead) return lastParts
  const parts = parsed(column)
  const isEnvelope = Array.isArray(parts) && parts.length === KINDS.length
  if (!isEnvelope || !KINDS.every((kinds, n) => kinds.includes(kindOf(parts[n]))))
    throw new Error('its envelope is invalid')
  lastRead = column
  lastParts = parts as Envelope
  lastLineage = lineageOf(lastParts[0])
  return lastParts
}

/** Returns the events above one; none for a foreign value. */
export function lineageIn(envelope: string): Lineage {
  try {
    partsOf(envelope)
    return lastLineage
  } catch {
    return lineageOf(null)
  }
}

/** Returns the time of publication. @throws an error with the reason if the envelope is invalid */
export const timestampOf = (envelope: string): number => partsOf(envelope)[4]

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
 * Returns the event of a row; its payload is text. Delay and lifetime are 0: the times of the row count.
 * @throws an error with the reason if it holds none
 */
export function frameOf(row: EventColumns): EventFrame {
  if (typeof row.payload !== 'string') throw new Error('its payload is not text')
  const [, requestId, trace, emitter, timestampMs, payloadKeys] = partsOf(row.envelope)
  const { parentId, ancestors } = lastLineage
  return {
    id: row.id,
    parentId,
    ancestors,
    event: row.event,
    emitter,
    requestId,
    key: keyOf(row.key),
    trace,
    payloadKeys,
    timestampMs,
    delayMs: 0,
    ttlMs: 0,
    unique: null,
    shares: '',
    seq: Number(row.seq),
    subscriber: 0,
    attempt: 0,
    beginBy: 0,
    payload: row.payload,
  }
}

/** Positions of one statement: few sizes, so that each is prepared once. A short list is filled up with its last position. */
const LIST_SIZES = [1, 16, 128] as const

/** Builds a statement for a list of positions: `… WHERE seq IN (…)`. */
export class PositionList {
  readonly #texts: ReadonlyMap<number, string>

  /** @param head everything before the list */
  constructor(head: string) {
    const listOf = (size: number): string => Array.from({ length: size }, (_, n) => `$${1 + n}`).join(', ')
    this.#texts = new Map(LIST_SIZES.map((size) => [size, `${head} (${listOf(size)})`]))
  }

  /** Sends the statements for all of them, without waiting for one before the next. */
  run(to: Queryable, positions: readonly number[]): Promise<unknown>[] {
    const running: Promise<unknown>[] = []
    for (let from = 0; from < positions.length; ) {
      const left = positions.length - from
      const size = LIST_SIZES.find((each) => each >= left) ?? LIST_SIZES.at(-1)!
      const list = positions.slice(from, from + size)
      while (list.length < size) list.push(list.at(-1)!)
      running.push(to.execute(this.#texts.get(size)!, list))
      from += size
    }
    return running
  }
}
