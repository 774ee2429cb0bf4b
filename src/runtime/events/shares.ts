// Whose an event is, and how urgent: its share. Of one share, events are delivered in order; shares take turns.
//
// A share is the digit of the priority, and behind it the values of the subscriber's functions as a JSON array, or UNKNOWN.
import type { ShareOf } from '../../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../../contracts/events.ts'
import { messageOf } from '../../core/errors/description.ts'
import { PRIORITIES } from '../../core/schemas/event-contracts.ts'

// Taken before plugins can replace it.
const { parse: parseJson, stringify: toJson } = JSON

/** Maximum characters of a value that tells a share. */
const VALUE_MAX_LENGTH = 200
/** Maximum bytes of all values of a subscriber: they are in an index. */
const VALUES_MAX_BYTES = 2000
/** Maximum bytes of a character. */
const BYTES_MAX = 3
/** The values of all events whose function has failed, or whose publisher did not know the subscriber. */
const UNKNOWN = '?'
/** The group of the share that all others have. */
export const OTHERS = '*'
/** Maximum characters of all shares of an event. */
const SHARES_MAX_LENGTH = 0xffff

const URGENT = `{"${OTHERS}"`

export const NORMAL = '1'
/** The share of a row whose publisher told none. */
export const NORMAL_SHARE = `${NORMAL}${UNKNOWN}`

export const priorityDigit = ({ priority = 'normal' }: Pick<PublishOptions, 'priority'>): string =>
  String(PRIORITIES.indexOf(priority))

/** 0 is the highest. @param share empty: a normal one */
export const priorityOf = (share: string): number => (share === '' ? 1 : Number(share[0]))

/** A group that asks whose events are. */
export interface Asking {
  readonly group: string
  readonly functions: readonly ShareOf[]
}

/** @returns group → share as JSON; empty if no group asks, and the priority is normal */
export function sharesFor(
  asking: readonly Asking[],
  priority: string,
  json: string,
  onFault: (group: string, fault: string) => void,
): string {
  if (asking.length === 0) return priority === NORMAL ? '' : toJson({ [OTHERS]: priority + UNKNOWN })
  // What the subscriber gets, which may be other than what is published: a Date, what has a toJSON.
  const data = parseJson(json) as Payload
  const told = (functions: readonly ShareOf[], group: string): string =>
    priority + valuesOf(functions, data, (fault) => onFault(group, fault))
  const others = priority === NORMAL ? '' : `"${OTHERS}":"${priority}${UNKNOWN}",`
  const all = asking.map(({ group, functions }) => `${toJson(group)}:${toJson(told(functions, group))}`)
  const shares = `{${others}${all.join()}}`
  if (shares.length <= SHARES_MAX_LENGTH) return shares
  for (const { group } of asking) onFault(group, `all shares of an event may have ${SHARES_MAX_LENGTH} characters`)
  return toJson({ [OTHERS]: priority + UNKNOWN })
}

function valuesOf(functions: readonly ShareOf[], data: Payload, onFault: (fault: string) => void): string {
  try {
    const values = toJson(functions.map((value) => checked(value(data))))
    if (values.length <= VALUES_MAX_BYTES / BYTES_MAX || Buffer.byteLength(values) <= VALUES_MAX_BYTES) return values
    throw new Error(`all its values together have more than ${VALUES_MAX_BYTES} bytes`)
  } catch (error) {
    onFault(messageOf(error))
    return UNKNOWN
  }
}

function checked(value: unknown): string | number | boolean | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value
  if (typeof value === 'string' && value.length <= VALUE_MAX_LENGTH) return value
  // Nobody awaits it: if it rejected, the thread would end.
  if (value instanceof Promise) value.catch(() => {})
  throw new Error(`it returned ${typeof value === 'string' ? `${value.length} characters` : typeof value}`)
}

/** The share of a group. @param shares as `sharesFor` returns it */
export function shareIn(shares: string, group: string): string {
  if (shares === '') return ''
  const all = parseJson(shares) as Record<string, string>
  return all[group] ?? all[OTHERS] ?? ''
}

/** True if the priority of an event is not the normal one. @param shares as `sharesFor` returns it */
export const isUrgent = (shares: string): boolean => shares !== '' && shares.startsWith(URGENT)

/** The value of one of the functions, as JSON. @param share of a group */
export function valueIn(share: string, n: number): string {
  const values = share.slice(1)
  return values === UNKNOWN || values === '' ? UNKNOWN : toJson((parseJson(values) as unknown[])[n])
}
