import { DbError } from '../../errors/db-error.ts'

type Bound = string | number | bigint | Uint8Array | null

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

/**
 * What better-sqlite3 binds for `$1, $2, …`: booleans as 1 and 0, dates as ISO 8601 UTC.
 * @throws DbError `other` for a wrong number of values, and for a value that no database would store as it is
 */
export function bindings(params: readonly unknown[], expected: number): Record<number, Bound> {
  if (params.length !== expected) {
    throw new DbError('other', `The statement has ${expected} parameter(s), but ${params.length} values were given`)
  }
  const bound: Record<number, Bound> = {}
  for (let i = 0; i < expected; i++) bound[i + 1] = bind(params[i], i + 1)
  return bound
}

function bind(value: unknown, number: number): Bound {
  switch (typeof value) {
    case 'string':
      // PostgreSQL cannot store it in text, so neither database does.
      if (value.includes('\0')) throw refused(number, 'a string with a NUL character')
      return value
    case 'number':
      if (!Number.isFinite(value)) throw refused(number, String(value))
      // better-sqlite3 binds what is no 32-bit integer as REAL: 5000000000 in a TEXT column would read '5000000000.0'.
      return value === (value | 0) || !Number.isSafeInteger(value) ? value : BigInt(value)
    case 'bigint':
      if (value < INT64_MIN || value > INT64_MAX) throw refused(number, 'an integer of more than 64 bits')
      return value
    case 'boolean':
      return value ? 1 : 0
    case 'object':
      if (value === null || value instanceof Uint8Array) return value
      if (value instanceof Date) {
        if (Number.isNaN(value.getTime())) throw refused(number, 'an invalid Date')
        return value.toISOString()
      }
      throw refused(number, Array.isArray(value) ? 'an array' : 'an object (JSON.stringify it)')
    default:
      throw refused(number, value === undefined ? 'undefined (null stands for no value)' : `a ${typeof value}`)
  }
}

function refused(number: number, what: string): DbError {
  return new DbError('other', `Parameter $${number} is ${what}`)
}
