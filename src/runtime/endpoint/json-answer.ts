// The JSON of an answer, and what JSON cannot hold.
import { HeddleError } from '../../core/errors/catalogue.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** Where an answer comes from, for its author. */
export interface AnswerSource {
  readonly plugin: string
  readonly method: string
  readonly route: string
  /** Header lines that the handler has set. */
  readonly head?: string
  /** The status that it has set; 0: none. */
  readonly chosenStatus?: number
}

/** Characters of a place that are shown, from its end. */
const PLACE_MAX = 200

/** Told of answers that are empty because a handler returns nothing. Null in production, where nobody would read of them. */
export const emptyAnswers: { tell: ((source: AnswerSource) => void) | null } = { tell: null }

/**
 * The JSON text of an answer. What JSON would silently turn into `{}` is refused.
 * @throws HTTP_ANSWER_INVALID that names the route, the place, the type and the fix
 */
export function jsonAnswer(answer: unknown, source: AnswerSource): string {
  if (typeof answer === 'object' && answer !== null) {
    if (Object.getPrototypeOf(answer) !== Object.prototype) refuseAt(answer, () => '', source)
    const { data } = answer as { data?: unknown }
    if (typeof data === 'object' && data !== null && Object.getPrototypeOf(data) !== Object.prototype)
      refuseAt(data, () => 'data', source)
  }
  const text = stringified(answer, source)
  if (text === undefined) {
    if (answer === undefined) {
      // Who sets a cookie or a status has answered by that.
      if (!source.head && !source.chosenStatus) emptyAnswers.tell?.(source)
      return 'null'
    }
    throw invalid(`a ${typeof answer}`, '', 'return an object', source)
  }
  // A Map, a Set, an Error and the like become `{}` wherever they stand: only then is it worth a search.
  if (text.includes('{}')) search(answer, source, text.length)
  return text
}

function stringified(answer: unknown, source: AnswerSource): string | undefined {
  try {
    return toJson(answer)
  } catch (thrown) {
    if (typeof answer === 'object' && answer !== null) search(answer, source, SEARCHED_MAX)
    // What has no end by itself, a circle, has another message.
    if (thrown instanceof RangeError)
      throw invalid('a value that is too large, or nested too deeply,', '', 'return less', source)
    throw thrown
  }
}

/** Values of an answer that has no JSON, in which is looked for the reason. */
const SEARCHED_MAX = 200_000

/** An object on the way to what is looked at, and which of its members is next. */
interface Level {
  readonly value: object
  readonly names: readonly string[]
  next: number
}

/**
 * Looks for what JSON cannot hold, in the order of the text. By a list of its own: an answer may be nested deeper than calls may be.
 * @param most values that are looked at: getters may make new ones without end
 */
function search(answer: unknown, source: AnswerSource, most: number): void {
  const levels: Level[] = []
  const above = new Set<object>()
  let left = most
  const enter = (value: unknown): void => {
    left--
    if (typeof value === 'bigint')
      throw invalid('a bigint', placeOf(levels), 'write String(value) or Number(value)', source)
    if (typeof value !== 'object' || value === null || above.has(value)) return
    refuseAt(value, () => placeOf(levels), source)
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return
    levels.push({ value, names: Object.keys(value), next: 0 })
    above.add(value)
  }
  enter(answer)
  for (let level = levels.at(-1); level !== undefined && left > 0; level = levels.at(-1)) {
    const name = level.names[level.next++]
    if (name !== undefined) enter((level.value as Record<string, unknown>)[name])
    else above.delete(levels.pop()!.value)
  }
}

/** `data.items[3].price` */
function placeOf(levels: readonly Level[]): string {
  let place = ''
  for (const { value, names, next } of levels) {
    const name = names[next - 1]!
    place += Array.isArray(value) ? `[${name}]` : place === '' ? name : `.${name}`
  }
  return place.length <= PLACE_MAX ? place : `…${place.slice(-PLACE_MAX)}`
}

function refuseAt(value: unknown, place: () => string, source: AnswerSource): void {
  if (typeof value !== 'object' || value === null) return
  const prototype = Object.getPrototypeOf(value) as unknown
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return
  const unfit = UNFIT.find(([isUnfit]) => isUnfit(value))
  if (unfit === undefined) return
  // Bytes and streams have a `toJSON`, or fields, that no client wants.
  const [, type, fix, isWhatever] = unfit
  if (!isWhatever && typeof (value as { toJSON?: unknown }).toJSON === 'function') return
  throw invalid(type ?? `a ${nameOf(value)}`, place(), fix, source)
}

function invalid(type: string, place: string, fix: string, { plugin, method, route }: AnswerSource): HeddleError {
  const where = place === '' ? '' : ` as ${place}`
  return new HeddleError(
    'HTTP_ANSWER_INVALID',
    `${plugin} answered ${method} ${route} with ${type}${where}, which JSON cannot hold: ${fix}`,
  )
}

type Unfit = readonly [isUnfit: (value: object) => boolean, type: string | null, fix: string, isWhatever?: true]

const has = (value: object, name: PropertyKey): boolean =>
  typeof (value as Record<PropertyKey, unknown>)[name] === 'function'

/** In this order: a stream is also an async iterable. `null` for the name of its class. */
const UNFIT: readonly Unfit[] = [
  [ArrayBuffer.isView, null, 'send bytes with context.sendBinary(bytes, type)', true],
  [(value) => value instanceof ArrayBuffer, null, 'send bytes with context.sendBinary(bytes, type)', true],
  [(value) => value instanceof Map, null, 'write Object.fromEntries(map)'],
  [(value) => value instanceof Set, null, 'write [...set]'],
  [(value) => value instanceof Error, null, 'throw it, or return { success: false, error: error.message }'],
  [(value) => value instanceof Response, null, 'return what is in it, `await response.json()`, and set its status'],
  [(value) => value instanceof Promise, null, 'await it'],
  [(value) => has(value, 'getReader') || has(value, 'pipe'), null, 'read it first, and return what it holds', true],
  [(value) => has(value, 'next') && has(value, Symbol.iterator), 'a generator', 'write [...generator]'],
  [(value) => has(value, Symbol.asyncIterator), 'an async generator', 'collect what it yields, and return that'],
  [(value) => value instanceof WeakMap || value instanceof WeakSet, null, 'its members cannot be listed'],
  [(value) => value instanceof RegExp, null, 'write String(expression)'],
]

function nameOf(value: object): string {
  return (value.constructor as { name?: unknown } | undefined)?.name?.toString() || 'value'
}
