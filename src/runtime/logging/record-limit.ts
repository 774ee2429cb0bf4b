import { cutText } from '../../core/errors/cut-text.ts'
import { namesIn } from '../../core/errors/description.ts'
import { withoutSecretTexts } from '../../core/schemas/secret-texts.ts'
import type { LogRecord } from '../../transport/messages.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Fields of a record that had to be cut, at most. */
const FIELDS_MAX = 50
/** Characters of the name of such a field. */
const NAME_MAX_LENGTH = 100

/** A record as it is sent and written. */
export interface LimitedRecord {
  record: LogRecord
  json: string
}

/** A record of at most `maxBytes` of JSON, without the secrets that are known by their look. One that is larger has cut texts, and its own size as the field `cut_bytes`. */
export function limitRecord(record: LogRecord, maxBytes: number): LimitedRecord {
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
  const json = withoutSecretTexts(given.json)
  return json === given.json ? given : { record: parseJson(json) as LogRecord, json }
}

function jsonRecord(record: LogRecord): LimitedRecord {
  try {
    return { record, json: toJson(record) }
  } catch {
    const readable = { ...record, fields: { unserialisable: namesIn(record.fields ?? {}) } }
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
