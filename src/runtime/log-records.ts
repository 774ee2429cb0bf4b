// Log records: made, limited in size and in rate.
import type { LogDetails, LogLevel } from '../contracts/logger.ts'
import { causality } from '../core/causality/context.ts'
import type { Settings } from '../core/config/schema.ts'
import { boundedJson, cutText, namesIn } from '../core/errors/description.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'
import type { LogRecord } from '../transport/messages.ts'

/** The rate holds over this time, milliseconds. */
const WINDOW_MS = 1000
/** This share of the rate is left for warnings and errors. */
const RESERVED_SHARE = 0.2

type LeftOut = Partial<Record<LogLevel, number>>

interface Window {
  startMs: number
  records: number
  leftOut: LeftOut
}

/**
 * The log of one thread. Limits how many records a plugin writes per second: one that logs in a loop costs the primary and the other plugins no more
 * than that.
 */
export class ThreadLog {
  readonly #perSecond: number
  readonly #lowMax: number
  readonly #maxBytes: number
  readonly #take: (record: LogRecord, json: string) => boolean
  readonly #windows = new Map<string, Window>()
  #timer: NodeJS.Timeout | undefined

  /** @param take gets each record within the limits. False: there was no room for it */
  constructor(
    { logPluginRate, logRecordBytes }: Pick<Settings, 'logPluginRate' | 'logRecordBytes'>,
    take: (record: LogRecord, json: string) => boolean,
  ) {
    this.#perSecond = logPluginRate
    this.#lowMax = Math.ceil(logPluginRate * (1 - RESERVED_SHARE))
    this.#maxBytes = logRecordBytes
    this.#take = take
  }

  readonly write = (level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void => {
    const window = this.#windowOf(identity)
    const max = level === 'DEBUG' || level === 'INFO' ? this.#lowMax : this.#perSecond
    if (window.records >= max) return this.#leaveOut(level, identity)
    window.records++
    this.tell(level, message, identity, fields)
  }

  /** Writes a record, however many there were. */
  tell(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    const { record, json } = limitRecord(newRecord(level, message, identity, fields), this.#maxBytes)
    if (!this.#take(record, json)) this.#leaveOut(level, identity)
  }

  /** Counts a record that is not written. */
  #leaveOut(level: LogLevel, identity: string): void {
    const { leftOut } = this.#windowOf(identity)
    leftOut[level] = (leftOut[level] ?? 0) + 1
    // A thread in a loop turns no timer: then its next record after the window tells.
    this.#timer ??= setTimeout(this.#tellAll, WINDOW_MS).unref()
  }

  #windowOf(identity: string): Window {
    const nowMs = performance.now()
    const window = this.#windows.get(identity)
    if (window === undefined) {
      const first = { startMs: nowMs, records: 0, leftOut: {} }
      this.#windows.set(identity, first)
      return first
    }
    if (nowMs - window.startMs >= WINDOW_MS) this.#turn(identity, window, nowMs)
    return window
  }

  #turn(identity: string, window: Window, nowMs: number): void {
    const { leftOut } = window
    window.startMs = nowMs
    window.records = 0
    window.leftOut = {}
    const count = Object.values(leftOut).reduce((sum, records) => sum + records, 0)
    if (count === 0) return
    const message = `${count} log records were left out: more than ${this.#perSecond} in a second (LOG_PLUGIN_RATE), or than the primary takes in`
    this.tell('WARNING', message, identity, leftOut)
  }

  readonly #tellAll = (): void => {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const [identity, window] of this.#windows) this.#turn(identity, window, nowMs)
  }
}

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Fields of a record that had to be cut, at most. */
const FIELDS_MAX = 50
/** Characters of the name of such a field. */
const NAME_MAX_LENGTH = 100

/** Characters of JSON of a record's fields that are read to be cut. Of more only the names are told: they may have no end. */
const FIELDS_READ_MAX = 16 << 20

/** A record as it is sent and written. */
interface LimitedRecord {
  record: LogRecord
  json: string
}

/** A record of at most `maxBytes` of JSON, without the secrets that are known by their look. One that is larger has cut texts, and its own size as the field `cut_bytes`. */
function limitRecord(record: LogRecord, maxBytes: number): LimitedRecord {
  const { record: readable, json } = readableRecord(record)
  const bytes = jsonBytes(json, maxBytes)
  if (bytes <= maxBytes) return { record: readable, json }
  // A character takes up to six bytes of JSON.
  for (let length = maxBytes; ; length = Math.floor(length / 2)) {
    const shorter = shortened(readable, length, bytes)
    const text = toJson(shorter)
    if (length < 1 || Buffer.byteLength(text) <= maxBytes) return { record: shorter, json: text }
  }
}

/** A plugin may log what is no JSON, and what is a secret. */
function readableRecord(record: LogRecord): LimitedRecord {
  const given = jsonRecord(record)
  const json = withoutSecretStrings(given.json)
  return json === given.json ? given : { record: parseJson(json) as LogRecord, json }
}

function jsonRecord(record: LogRecord): LimitedRecord {
  try {
    const isFlat = Object.values(record.fields ?? NONE).every((value) => typeof value !== 'object')
    return { record, json: isFlat ? toJson(record) : boundedJson(record, FIELDS_READ_MAX)! }
  } catch {
    const readable = { ...record, fields: { unserialisable: namesIn(record.fields ?? {}).slice(0, FIELDS_MAX) } }
    return { record: readable, json: toJson(readable) }
  }
}

/** Counted only where it could be too much. */
function jsonBytes(json: string, maxBytes: number): number {
  return json.length * 3 <= maxBytes ? json.length : Buffer.byteLength(json)
}

/** @param length characters of all texts together: half of them the message's, and each field gets half of what is left */
function shortened(record: LogRecord, length: number, bytes: number): LogRecord {
  const message = cutText(record.message, Math.floor(length / 2))
  const fields: Record<string, unknown> = Object.create(null)
  let left = length - Math.min(record.message.length, Math.floor(length / 2))
  // As JSON has them: reading the plugin's object again could give something else.
  const values = parseJson(toJson(record.fields ?? {})) as Record<string, unknown>
  for (const [name, value] of Object.entries(values).slice(0, FIELDS_MAX)) {
    const text = typeof value === 'string' ? value : toJson(value)
    const max = Math.floor(left / 2)
    fields[name.slice(0, NAME_MAX_LENGTH)] = text.length <= max ? value : cutText(text, max)
    left -= Math.min(text.length, max)
  }
  fields.cut_bytes = bytes
  return { ...record, message, fields: { ...fields } }
}

/** A record of now, with the request and the event that are being handled here. */
export function newRecord(
  level: LogLevel,
  message: string,
  identity: string,
  fields: Record<string, unknown> | undefined,
): LogRecord {
  const record: LogRecord = { level, message, timestampMs: Date.now(), identity }
  if (fields !== undefined) record.fields = fields
  const cause = causality.getStore()
  if (cause === undefined) return record
  if (cause.requestId !== null) record.requestId = cause.requestId
  if (cause.eventId !== null) record.eventId = cause.eventId
  return record
}

const NONE: Readonly<Record<string, unknown>> = Object.freeze({})

/** What a sink is told besides the message. The runtime names the request of some records as a field, where it is not at work on it. */
export function detailsOf({ requestId, eventId, fields = NONE }: LogRecord): LogDetails {
  return {
    request_id: requestId ?? textOf(fields.request_id),
    event_id: eventId ?? textOf(fields.event_id),
    fields,
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
