// Events as their publisher makes them: name, payload, causes.

import type { PublishOptions } from '../../contracts/events.ts'
import type { CausalContext } from '../../contracts/tracing.ts'
import { causality, NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import { makeEventId } from '../../core/causality/ids.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { EventFrame, UniqueEvent } from '../../transport/frames/event-frame.ts'

/** Sends events out of this thread. */
export interface Publisher {
  /** Resolves with the event's id when the broker has the event; may throw at once. */
  publish(frame: EventFrame): Promise<string>
}

/** Default of EVENT_BUS_MAX_NAMES. */
export const EVENT_NAMES_MAX = 1000

/** Event names published by each plugin, where an external broker takes them: each costs it a stream. */
export class EventNames {
  readonly #max: number
  readonly #names = new Map<string, Set<string>>()

  /** @param max EVENT_BUS_MAX_NAMES */
  constructor(max: number) {
    this.#max = max
  }

  /** @throws EVENT_NAMES_LIMIT */
  check(emitter: string, event: string): void {
    let names = this.#names.get(emitter)
    if (names === undefined) {
      names = new Set()
      this.#names.set(emitter, names)
    }
    if (names.has(event)) return
    if (names.size >= this.#max) throw tooManyNames(emitter, event, this.#max)
    names.add(event)
  }
}

export function tooManyNames(emitter: string, event: string, max: number): HeddleError {
  return new HeddleError(
    'EVENT_NAMES_LIMIT',
    `${emitter} has published ${max} different events, and ${event} is one more than EVENT_BUS_MAX_NAMES allows: put the variable part into the payload`,
  )
}

// Saved before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

const PAYLOAD_MAX_BYTES = 1 << 20

/** A payload for transport: JSON text, and the names of its keys joined by U+0000. */
interface EncodedPayload {
  json: string
  keys: string
}

/** @throws EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE */
export function encodePayload(event: string, payload: unknown): EncodedPayload {
  const invalid = (fault: string, cause?: unknown): HeddleError =>
    new HeddleError('EVENT_PAYLOAD_INVALID', `The payload of ${event} ${fault}`, { cause })
  if (Object.prototype.toString.call(payload) !== '[object Object]')
    throw invalid(`must be a JSON object, not ${kindOf(payload)}`)
  let json: string
  try {
    json = toJson(payload)
  } catch (error) {
    throw invalid(`is no JSON: ${(error as Error).message}`, error)
  }
  // The payload's own `toJSON` may return anything.
  if (json === undefined || json.charCodeAt(0) !== 0x7b) throw invalid('must be a JSON object')
  if (json.length * 3 > PAYLOAD_MAX_BYTES && Buffer.byteLength(json) > PAYLOAD_MAX_BYTES) {
    const tooLarge = `The payload of ${event} has ${Buffer.byteLength(json)} bytes; ${PAYLOAD_MAX_BYTES} are allowed`
    throw new HeddleError('EVENT_PAYLOAD_TOO_LARGE', tooLarge)
  }
  return { json, keys: keysOf(payload as Record<string, unknown>, json) }
}

/** Names of the last payload, and their joined text: events with the same names share one string and its hash. */
let lastNames: readonly string[] = []
let lastKeys = ''

function keysOf(payload: Record<string, unknown>, json: string): string {
  if (typeof payload.toJSON === 'function') return Object.keys(parseJson(json)).join('\0')
  const names = Object.keys(payload)
  let isLast = names.length === lastNames.length
  for (let n = 0; n < names.length; n++) {
    const name = names[n]!
    if (isLeftOut(payload[name])) return joined(names.filter((each) => !isLeftOut(payload[each])))
    if (isLast && name !== lastNames[n]) isLast = false
  }
  if (!isLast) {
    lastNames = names
    lastKeys = joined(names)
  }
  return lastKeys
}

/** JSON leaves these out. */
const isLeftOut = (value: unknown): boolean =>
  value === undefined || typeof value === 'function' || typeof value === 'symbol'

const joined = (names: readonly string[]): string => names.join('\0')

export const splitKeys = (keys: string): string[] => (keys === '' ? [] : keys.split('\0'))

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1) : typeof value
}

/**
 * Returns a new event with its id and time.
 * @param payload in the format of the next hop (see EventFrame)
 * @param payloadKeys joined by U+0000
 * @param cause default: the running handler's
 */
export function publicationOf(
  emitter: string,
  event: string,
  payload: string,
  payloadKeys: string,
  options: PublishOptions,
  cause: CausalContext | undefined = causality.getStore(),
): EventFrame {
  return {
    id: makeEventId(),
    parentId: cause?.eventId ?? null,
    ancestors: cause?.ancestors ?? '',
    event,
    emitter,
    requestId: cause?.requestId ?? null,
    key: options.key ?? null,
    trace: cause?.trace?.traceContext ?? NO_TRACE_CONTEXT,
    payloadKeys,
    timestampMs: Date.now(),
    delayMs: options.delayMs ?? 0,
    ttlMs: options.ttlMs ?? 0,
    unique: options.unique === undefined ? null : uniqueOf(options),
    shares: '',
    seq: 0,
    subscriber: 0,
    attempt: 0,
    beginBy: 0,
    payload,
  }
}

/** With the defaults. */
const uniqueOf = ({ unique, replace = false, while: until }: PublishOptions): UniqueEvent => ({
  name: unique!,
  while: until ?? (replace ? 'waiting' : 'running'),
  replaces: replace,
})

/** Of an event that would replace another. */
export function otherKey({ event, unique }: EventFrame): HeddleError {
  return new HeddleError(
    'EVENT_OPTIONS_INVALID',
    `The event ${event} with unique '${unique!.name}' that would be replaced has another key: the order of its key would be lost`,
  )
}
