import { HeddleError } from '../../core/errors/catalogue.ts'

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

/** Told of answers that are empty because a handler returns nothing. Null in production, where nobody would read of them. */
export const emptyAnswers: { tell: ((source: AnswerSource) => void) | null } = { tell: null }

/**
 * The JSON text of an answer. What JSON would silently turn into `{}` is refused.
 * @throws HTTP_ANSWER_INVALID that names the route, the place, the type and the mend
 */
export function jsonAnswer(answer: unknown, source: AnswerSource): string {
  if (typeof answer === 'object' && answer !== null) {
    if (Object.getPrototypeOf(answer) !== Object.prototype) refuseAt(answer, '', source)
    const { data } = answer as { data?: unknown }
    if (typeof data === 'object' && data !== null && Object.getPrototypeOf(data) !== Object.prototype)
      refuseAt(data, 'data', source)
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
  if (text.includes('{}')) search(answer, '', source)
  return text
}

function stringified(answer: unknown, source: AnswerSource): string | undefined {
  try {
    return JSON.stringify(answer)
  } catch (thrown) {
    if (typeof answer === 'object' && answer !== null) search(answer, '', source)
    throw thrown
  }
}

/** Looks for what JSON cannot hold, in the order of the text. */
function search(value: unknown, place: string, source: AnswerSource, above: readonly object[] = []): void {
  if (typeof value === 'bigint') throw invalid('a bigint', place, 'write String(value) or Number(value)', source)
  if (typeof value !== 'object' || value === null || above.includes(value)) return
  refuseAt(value, place, source)
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return
  for (const [key, member] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${place}[${key}]` : place === '' ? key : `${place}.${key}`
    search(member, at, source, [...above, value])
  }
}

function refuseAt(value: unknown, place: string, source: AnswerSource): void {
  if (typeof value !== 'object' || value === null) return
  const prototype = Object.getPrototypeOf(value) as unknown
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return
  const unfit = UNFIT.find(([isUnfit]) => isUnfit(value))
  if (unfit === undefined) return
  // Bytes and streams have a `toJSON`, or fields, that no client wants.
  const [, type, mend, isWhatever] = unfit
  if (!isWhatever && typeof (value as { toJSON?: unknown }).toJSON === 'function') return
  throw invalid(type ?? `a ${nameOf(value)}`, place, mend, source)
}

function invalid(type: string, place: string, mend: string, { plugin, method, route }: AnswerSource): HeddleError {
  const where = place === '' ? '' : ` as ${place}`
  return new HeddleError(
    'HTTP_ANSWER_INVALID',
    `${plugin} answered ${method} ${route} with ${type}${where}, which JSON cannot hold: ${mend}`,
  )
}

type Unfit = readonly [isUnfit: (value: object) => boolean, type: string | null, mend: string, isWhatever?: true]

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
