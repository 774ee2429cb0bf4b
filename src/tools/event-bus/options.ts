import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeliveryPageOptions,
  EventLimit,
  FollowOptions,
  ShareOf,
  SubscribeOptions,
  SubscriberOptions,
} from '../../contracts/event-bus.ts'
import type { CancelFilter, CancelOptions, CancelTarget, PublishOptions } from '../../contracts/events.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { PRIORITIES, SUBSCRIBER_DEFAULTS } from '../../core/schemas/event-contracts.ts'

// The longest wait that Node's timers take: 24.8 days.
const MAX_MS = 2_147_483_647
const MAX_RETRIES = 1000
const MAX_LIMITS = 8
const MIN_PER_MS = 10
const MAX_PER_MS = 30 * 86_400_000
const MIN_RESULT_MS = 1000
const MAX_RESULT_MS = 30 * 86_400_000
const MAX_CONCURRENCY = 1_000_000
const MAX_KEY_CHARS = 512
/** As JSON, in bytes: an entry of PostgreSQL's indexes has 2,704. */
const MAX_UNIQUE_BYTES = 2048
const NAME = /^[A-Za-z0-9._:-]{1,200}$/
const NAME_WANTED = '1 to 200 of the characters A-Z a-z 0-9 . _ : -'
const MAX_LETTERS = 1000
const MAX_DELIVERIES = 500
const MAX_SEARCH_CHARS = 1000
const MAX_SUBSCRIBER_CHARS = 500
const DELIVERY_STATES = ['waiting', 'running', 'later', 'retrying', 'blocked'] as const
const MAX_REPLAYED = 10_000
const EVENT_ID = /^evt_[0-9a-f]{32}$/
/** Nobody publishes it: its time is the year 1970. */
const NO_EVENT = `evt_${'0'.repeat(32)}`
/** A group, and a place or a time with a number; or an event in memory. */
const PAGE_END = /^(?:\d{1,16}(?:\.\d{1,16}){1,2}|m(?:evt_[0-9a-f]{32})?)$/
const LETTER_ID = /^dl_[0-9a-f-]{1,64}$/
const DEFAULT_REQUEST_TIMEOUT_MS = 5000
// Shared, because most events are published without options.
const NO_OPTIONS: PublishOptions = Object.freeze({})

export const isEventName = (event: unknown): event is string => typeof event === 'string' && NAME.test(event)

export function checkEventName(event: unknown): void {
  if (isEventName(event)) return
  throw new HeddleError('EVENT_NAME_INVALID', `An event name must be ${NAME_WANTED}, got ${show(event)}`)
}

export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== 'function') throw invalid(`${what} must be a function`, value)
}

export function checkPublishOptions(options: unknown): PublishOptions {
  if (options === undefined) return NO_OPTIONS
  const { key, delayMs, ttlMs, at, priority, ...rest } = asObject<PublishOptions>(options)
  checkKey(key)
  const unique = rest.unique === undefined ? undefined : checkUnique(rest)
  if (unique === undefined) checkNoUnique(rest)
  if (priority !== undefined && !PRIORITIES.includes(priority))
    throw invalid("priority must be 'high', 'normal' or 'low'", priority)
  checkRange('delayMs', delayMs, 0, Number.MAX_SAFE_INTEGER)
  checkRange('ttlMs', ttlMs, 1, MAX_MS)
  if (at !== undefined && delayMs !== undefined) throw refused('Give either at or delayMs')
  const checked: PublishOptions = { ...unique }
  if (key !== undefined) checked.key = key
  const delay = at === undefined ? delayMs : delayUntil(at)
  if (delay !== undefined) checked.delayMs = delay
  if (ttlMs !== undefined) checked.ttlMs = ttlMs
  if (priority !== undefined) checked.priority = priority
  return checked
}

type UniqueOptions = Pick<PublishOptions, 'unique' | 'while' | 'replace'>

function checkUnique({ unique, while: until, replace = false }: UniqueOptions): Required<UniqueOptions> {
  checkUniqueName(unique)
  if (typeof replace !== 'boolean') throw invalid('replace must be true or false', replace)
  if (until !== undefined && until !== 'waiting' && until !== 'running')
    throw invalid("while must be 'waiting' or 'running'", until)
  if (replace && until === 'running')
    throw refused("replace goes with while: 'waiting', its default: what a handler has begun cannot be replaced")
  return { unique: unique!, while: until ?? (replace ? 'waiting' : 'running'), replace }
}

function checkNoUnique({ while: until, replace }: UniqueOptions): void {
  if (until !== undefined || replace !== undefined) throw refused('while and replace are for events with unique')
}

function checkUniqueName(unique: unknown): void {
  const isText = typeof unique === 'string' && unique.length >= 1 && unique.length <= MAX_KEY_CHARS
  if (isText && Buffer.byteLength(JSON.stringify(unique)) <= MAX_UNIQUE_BYTES) return
  throw invalid(
    `unique must be a string of 1 to ${MAX_KEY_CHARS} characters, as JSON of at most ${MAX_UNIQUE_BYTES} bytes`,
    unique,
  )
}

function checkKey(key: unknown): void {
  if (key === undefined || (typeof key === 'string' && key.length >= 1 && key.length <= MAX_KEY_CHARS)) return
  throw invalid(`key must be a string of 1 to ${MAX_KEY_CHARS} characters`, key)
}

export function checkCancel(what: unknown, options: unknown): CancelTarget {
  const { causedToo = false } = asObject<CancelOptions>(options)
  if (typeof causedToo !== 'boolean') throw invalid('causedToo must be true or false', causedToo)
  if (typeof what === 'string') {
    if (EVENT_ID.test(what)) return causedToo ? { id: what, causedToo } : what
    throw invalid('cancel takes the id of an event, or { event, key, unique }', what)
  }
  const { event, key, unique } = asObject<Exclude<CancelFilter, string>>(what)
  checkEventName(event)
  // What has ended is not known any more, and so what it has caused.
  if (causedToo) throw refused('causedToo is for the id of an event: take the events of a name back one by one')
  checkKey(key)
  if (unique !== undefined) checkUniqueName(unique)
  return { event, ...defined({ key, unique }) }
}

/** @param what takes it */
export function checkEventId(what: string, id: unknown): string {
  if (typeof id === 'string' && EVENT_ID.test(id)) return id
  throw invalid(`${what} takes the id of an event`, id)
}

/** A text that is no id is often from the address of a request: nothing is known of it. */
export function checkFollowed(id: unknown): string {
  if (typeof id === 'string') return EVENT_ID.test(id) ? id : NO_EVENT
  throw invalid('follow takes the id of an event', id)
}

/** @returns null: all of the event */
export function checkSubscriber(subscriber: unknown): string | null {
  if (subscriber === undefined) return null
  const isName = typeof subscriber === 'string' && subscriber.length >= 1 && subscriber.length <= MAX_SUBSCRIBER_CHARS
  if (isName) return subscriber
  throw invalid('subscriber must be the name of a subscriber, as queues() has it', subscriber)
}

export function checkDeliveryPage(page: unknown): DeliveryPageOptions {
  const given = asObject<DeliveryPageOptions>(page)
  const { event, subscriber, state, key, id, search, payloads, limit, after } = given
  checkEventName(event)
  if (subscriber === undefined) throw invalid('getDeliveries takes { event, subscriber }, as queues() has them', page)
  checkSubscriber(subscriber)
  checkKey(key)
  if (state !== undefined && !DELIVERY_STATES.includes(state))
    throw invalid(`state must be one of ${DELIVERY_STATES.join(', ')}`, state)
  if (id !== undefined && !EVENT_ID.test(id)) throw invalid('id must be the id of an event', id)
  // JSON has no NUL, and PostgreSQL takes none.
  const isText =
    typeof search === 'string' && search.length >= 1 && search.length <= MAX_SEARCH_CHARS && !search.includes('\0')
  if (search !== undefined && !isText)
    throw invalid(`search must be 1 to ${MAX_SEARCH_CHARS} characters, and no NUL`, search)
  if (payloads !== undefined && typeof payloads !== 'boolean') throw invalid('payloads must be true or false', payloads)
  checkRange('limit', limit, 1, MAX_DELIVERIES)
  if (after !== undefined && !(typeof after === 'string' && PAGE_END.test(after)))
    throw invalid('after must be `next` of a page', after)
  return { event, subscriber, ...defined({ state, key, id, search, payloads, limit, after }) }
}

export function checkFollowOptions(options: unknown): FollowOptions {
  const { from, signal } = asObject<FollowOptions>(options)
  // A client may send anything as Last-Event-ID: then it begins anew.
  if (from !== undefined && typeof from !== 'string') throw invalid('from must be the id of an item', from)
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal must be an AbortSignal', signal)
  return defined({ from, signal })
}

/** The fraction tells a date from a delay, see `EventFrame`. */
const BY_DATE = 0.5

/** Milliseconds from now, with BY_DATE; 0 for a time that has passed. */
function delayUntil(at: unknown): number {
  if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw invalid('at must be a Date that is a time', at)
  const leftMs = at.getTime() - Date.now()
  return leftMs > 0 ? leftMs + BY_DATE : 0
}

/** @returns the options with the defaults filled in; `group` and `concurrency` stay unset when they were */
export function checkSubscribeOptions(options: unknown): { options: SubscriberOptions; shares: readonly ShareOf[] } {
  const given = asObject<SubscribeOptions>(options)
  const {
    retries = SUBSCRIBER_DEFAULTS.retries,
    backoffMs = SUBSCRIBER_DEFAULTS.backoffMs,
    timeoutMs = SUBSCRIBER_DEFAULTS.timeoutMs,
    broadcast = SUBSCRIBER_DEFAULTS.broadcast,
    transaction = false,
    onDead = 'skip',
    group,
    concurrency,
    resultMs,
    limit,
    fair,
  } = given
  checkRange('retries', retries, 0, MAX_RETRIES)
  checkRange('backoffMs', backoffMs, 0, MAX_MS)
  checkRange('timeoutMs', timeoutMs, 1, MAX_MS)
  checkRange('resultMs', resultMs, MIN_RESULT_MS, MAX_RESULT_MS)
  if (resultMs !== undefined && broadcast)
    throw refused('resultMs and broadcast cannot be combined: each thread has its own result')
  if (typeof broadcast !== 'boolean') throw invalid('broadcast must be true or false', broadcast)
  if (typeof transaction !== 'boolean') throw invalid('transaction must be true or false', transaction)
  if (transaction && broadcast) {
    throw refused('transaction and broadcast cannot be combined: an event is handled once, or in every thread')
  }
  if (onDead !== 'skip' && onDead !== 'park') throw invalid("onDead must be 'skip' or 'park'", onDead)
  if (onDead === 'park' && broadcast) {
    throw refused("onDead: 'park' and broadcast cannot be combined: a key has one order")
  }
  if (group !== undefined && !(typeof group === 'string' && NAME.test(group))) {
    throw invalid(`group must be ${NAME_WANTED}`, group)
  }
  const shares: ShareOf[] = []
  const limits = limit === undefined ? undefined : checkLimits(limit, shares)
  const atOnce = concurrency === undefined ? undefined : checkConcurrency(concurrency, shares)
  if (typeof atOnce === 'object' && broadcast)
    throw refused('concurrency over all processes and broadcast cannot be combined: every thread gets every event')
  const turns = fair === undefined ? undefined : shareIn(shares, fair, 'fair')
  if (turns !== undefined && broadcast)
    throw refused('fair and broadcast cannot be combined: every thread gets every event')
  if (limits !== undefined && broadcast)
    throw refused('limit and broadcast cannot be combined: every thread gets every event')
  const parking = onDead === 'park' ? { onDead } : {}
  const always = { retries, backoffMs, timeoutMs, broadcast }
  const checked = defined({
    ...always,
    group,
    concurrency: atOnce,
    resultMs,
    limit: limits,
    fair: turns,
    transaction: transaction || undefined,
    ...parking,
  })
  return { options: checked, shares }
}

function checkConcurrency(given: unknown, shares: ShareOf[]): NonNullable<SubscriberOptions['concurrency']> {
  if (typeof given === 'number') {
    checkRange('concurrency', given, 1, MAX_CONCURRENCY)
    return given
  }
  const { max, by } = asObject<{ max: number; by?: ShareOf }>(given)
  if (max === undefined) throw invalid('concurrency must be a number, or { max, by }', given)
  checkRange('concurrency.max', max, 1, MAX_CONCURRENCY)
  return defined({ max, by: by === undefined ? undefined : shareIn(shares, by, 'concurrency.by') })
}

/** The number of a function among those that tell shares. */
function shareIn(shares: ShareOf[], share: unknown, what: string): number {
  checkFunction(what, share)
  const known = shares.indexOf(share as ShareOf)
  return known >= 0 ? known : shares.push(share as ShareOf) - 1
}

function checkLimits(given: unknown, shares: ShareOf[]): NonNullable<SubscriberOptions['limit']> {
  const limits = Array.isArray(given) ? (given as unknown[]) : [given]
  if (limits.length === 0 || limits.length > MAX_LIMITS)
    throw invalid(`limit must be { max, perMs }, or a list of 1 to ${MAX_LIMITS} of them`, given)
  return limits.map((each) => {
    const { max, perMs, name, by } = asObject<EventLimit>(each)
    if (max === undefined || perMs === undefined) throw invalid('limit must be { max, perMs }', each)
    checkRange('limit.max', max, 1, MAX_CONCURRENCY)
    checkRange('limit.perMs', perMs, MIN_PER_MS, MAX_PER_MS)
    if (name !== undefined && !isEventName(name)) throw invalid(`limit.name must be ${NAME_WANTED}`, name)
    return defined({ max, perMs, name, by: by === undefined ? undefined : shareIn(shares, by, 'limit.by') })
  })
}

/** @returns the timeout in milliseconds */
export function checkRequestOptions(options: unknown): number {
  const { timeoutMs = DEFAULT_REQUEST_TIMEOUT_MS } = asObject<{ timeoutMs?: number }>(options)
  checkRange('timeoutMs', timeoutMs, 1, MAX_MS)
  return timeoutMs
}

export function checkLetterPage(page: unknown): DeadLetterPage {
  const { limit, before, replayed, payloads, ...filter } = asObject<DeadLetterPage>(page)
  checkRange('limit', limit, 1, MAX_LETTERS)
  if (replayed !== undefined && typeof replayed !== 'boolean') throw invalid('replayed must be true or false', replayed)
  if (before !== undefined && !(typeof before === 'string' && LETTER_ID.test(before))) {
    throw invalid('before must be the id of a dead letter', before)
  }
  if (payloads !== undefined && typeof payloads !== 'boolean') throw invalid('payloads must be true or false', payloads)
  return defined({ limit, before, replayed, payloads, ...filterOf(filter) })
}

/** @returns the filter, with `limit` filled in */
export function checkLetterFilter(given: unknown): DeadLetterFilter & { limit: number } {
  const { limit = MAX_LETTERS, ...filter } = asObject<DeadLetterFilter & { limit?: number }>(given)
  checkRange('limit', limit, 1, MAX_REPLAYED)
  return { limit, ...filterOf(filter) }
}

function filterOf({ event, subscriber, error, since, until, parked, ids }: DeadLetterFilter): DeadLetterFilter {
  if (parked !== undefined && typeof parked !== 'boolean') throw invalid('parked must be true or false', parked)
  for (const [name, text] of Object.entries({ event, subscriber, error }))
    if (text !== undefined && typeof text !== 'string') throw invalid(`${name} must be a string`, text)
  const areIds = ids === undefined || (Array.isArray(ids) && ids.length <= MAX_LETTERS && ids.every(isLetterId))
  if (!areIds) throw invalid(`ids must be a list of at most ${MAX_LETTERS} ids of dead letters`, ids)
  return defined({
    event,
    subscriber,
    error,
    since: timeOf('since', since),
    until: timeOf('until', until),
    parked,
    ids,
  })
}

const isLetterId = (id: unknown): boolean => typeof id === 'string' && LETTER_ID.test(id)

/** As ISO 8601, since it goes to another thread. */
function timeOf(name: string, time: unknown): string | undefined {
  if (time === undefined) return undefined
  const date = typeof time === 'string' ? new Date(time) : time
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) throw invalid(`${name} must be a time`, time)
  return date.toISOString()
}

function asObject<T extends object>(options: unknown): T {
  if (options === undefined) return {} as T
  if (typeof options !== 'object' || options === null) throw invalid('options must be an object', options)
  return options as T
}

function checkRange(name: string, value: unknown, min: number, max: number): void {
  if (value === undefined) return
  if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return
  throw invalid(`${name} must be a whole number from ${min} to ${max}`, value)
}

function defined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

const refused = (why: string): HeddleError => new HeddleError('EVENT_OPTIONS_INVALID', why)
const invalid = (wanted: string, got: unknown): HeddleError => refused(`${wanted}, got ${show(got)}`)

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)
  return typeof value === 'number' ? String(value) : value === null ? 'null' : typeof value
}
