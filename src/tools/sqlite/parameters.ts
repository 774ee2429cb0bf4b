import { checkCount, parameterOf } from '../../stores/sql/parameters.ts'

type Bound = string | number | bigint | Uint8Array | null

/** Integers that occur often, as better-sqlite3 takes them. */
const SMALL = Array.from({ length: 1024 }, (_, n) => BigInt(n))

/**
 * The values that better-sqlite3 binds, one for each placeholder in the order of the text: booleans as 1 and 0, dates as ISO 8601 UTC.
 * @param expected how many values the statement takes
 * @param order the places of the values, where they do not stand in the text in their own order
 * @throws DbError `other` for a wrong number of values, and for a value that some database would not store unchanged
 */
export function bindingsByPlace(
  params: readonly unknown[],
  expected: number,
  order: readonly number[] | null,
): readonly Bound[] {
  checkCount(params, expected)
  const bound: Bound[] = []
  if (order === null) for (let i = 0; i < expected; i++) bound.push(bind(params[i], i + 1))
  else for (const place of order) bound.push(bind(params[place], place + 1))
  return bound
}

/** The same for a statement in which a placeholder occurs twice: by the names `$1, $2, …`. */
export function bindingsByName(params: readonly unknown[], expected: number): Record<number, Bound> {
  checkCount(params, expected)
  const bound: Record<number, Bound> = {}
  for (let i = 0; i < expected; i++) bound[i + 1] = bind(params[i], i + 1)
  return bound
}

function bind(value: unknown, number: number): Bound {
  const parameter = parameterOf(value, number)
  if (typeof parameter === 'boolean') return parameter ? 1 : 0
  // better-sqlite3 binds every number as REAL: 5 in a TEXT column would become '5.0', and 5 / 2 would be 2.5.
  if (typeof parameter === 'number' && Number.isSafeInteger(parameter)) return SMALL[parameter] ?? BigInt(parameter)
  return parameter
}
