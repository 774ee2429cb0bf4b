import { checkCount, parameterOf } from '../../stores/sql/parameters.ts'

/** A parameter as it is sent: text, bytes, or NULL. */
export type WireValue = string | Buffer | null

/** Converts a column's text to a value. Without a decoder the text is the value. */
export type Decoder = (text: string) => unknown

/**
 * Parameters are sent without a type. PostgreSQL infers it from the context, so a number can be stored in a TEXT column and a text
 * compared with a UUID, as on SQLite. Without any context (`SELECT $1`) it is text; `CAST($1 AS INTEGER)` gives it another type.
 * @throws DbError `other` for a wrong number of values, and for a value that some database would not store unchanged
 */
export function wireValues(params: readonly unknown[], expected: number): WireValue[] {
  checkCount(params, expected)
  const values: WireValue[] = new Array(expected)
  for (let i = 0; i < expected; i++) values[i] = wireValue(params[i], i + 1)
  return values
}

function wireValue(value: unknown, number: number): WireValue {
  const parameter = parameterOf(value, number)
  switch (typeof parameter) {
    case 'string':
      return parameter
    case 'boolean':
      // Valid for a BOOLEAN and for an INTEGER column.
      return parameter ? '1' : '0'
    case 'object':
      if (parameter === null || Buffer.isBuffer(parameter)) return parameter
      return Buffer.from(parameter.buffer, parameter.byteOffset, parameter.byteLength)
    default:
      return String(parameter)
  }
}

/** Every integer with up to so many digits is safe. */
const SAFE_DIGITS = 15
const TIMESTAMP = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00)?$/

function decodeInteger(text: string): number | bigint {
  const number = Number(text)
  return text.length <= SAFE_DIGITS || Number.isSafeInteger(number) ? number : BigInt(text)
}

/** Like SQLite: a sum of integers is an integer, everything else a float. */
function decodeNumeric(text: string): number | bigint {
  return /^-?\d+$/.test(text) ? decodeInteger(text) : Number(text)
}

/** The same text that a Date parameter becomes. Infinity and years BC stay as PostgreSQL writes them. */
function decodeTimestamp(text: string): string {
  const match = TIMESTAMP.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}.${(match[3] ?? '').padEnd(3, '0')}Z`
}

// The keys are type ids of pg_type.dat, which never change.
const DECODERS = new Map<number, Decoder>([
  [16, (text) => text === 't'],
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  [20, decodeInteger],
  [21, Number],
  [23, Number],
  [26, Number],
  [700, Number],
  [701, Number],
  [1114, decodeTimestamp],
  [1184, decodeTimestamp],
  [1700, decodeNumeric],
])

/** Libraries have decoders of their own for these: timestamps, NUMERIC. */
const LEFT_TO_LIBRARIES: ReadonlySet<number> = new Set([1114, 1184, 1700])

/** Other types come as PostgreSQL writes them: JSON, UUID, DATE, arrays. */
export function decoderOf(typeId: number, isForLibrary = false): Decoder | undefined {
  return isForLibrary && LEFT_TO_LIBRARIES.has(typeId) ? undefined : DECODERS.get(typeId)
}
