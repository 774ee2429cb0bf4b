import { checkCount, parameterOf } from '../../stores/sql/parameter.ts'

type Bound = string | number | bigint | Uint8Array | null

/**
 * The values that better-sqlite3 binds to `$1, $2, …`: booleans as 1 and 0, dates as ISO 8601 UTC.
 * @throws DbError `other` for a wrong number of values, and for a value that some database would not store unchanged
 */
export function bindings(params: readonly unknown[], expected: number): Record<number, Bound> {
  checkCount(params, expected)
  const bound: Record<number, Bound> = {}
  for (let i = 0; i < expected; i++) bound[i + 1] = bind(params[i], i + 1)
  return bound
}

function bind(value: unknown, number: number): Bound {
  const parameter = parameterOf(value, number)
  if (typeof parameter === 'boolean') return parameter ? 1 : 0
  // better-sqlite3 binds every number as REAL: 5 in a TEXT column would become '5.0', and 5 / 2 would be 2.5.
  if (typeof parameter === 'number' && Number.isSafeInteger(parameter)) return BigInt(parameter)
  return parameter
}
