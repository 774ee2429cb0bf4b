import { HeddleError } from '../../core/errors/catalogue.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

export const PAYLOAD_MAX_BYTES = 1 << 20

/** A payload as it travels: JSON text, and the names of its keys joined by U+0000. */
export interface EncodedPayload {
  json: string
  keys: string
}

/** @throws EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE */
export function encodePayload(event: string, payload: unknown): EncodedPayload {
  if (Object.prototype.toString.call(payload) !== '[object Object]') {
    throw new HeddleError(
      'EVENT_PAYLOAD_INVALID',
      `The payload of ${event} must be a JSON object, not ${kindOf(payload)}`,
    )
  }
  let json: string
  try {
    json = toJson(payload)
  } catch (error) {
    throw new HeddleError('EVENT_PAYLOAD_INVALID', `The payload of ${event} is no JSON: ${(error as Error).message}`, {
      cause: error,
    })
  }
  // The payload's own `toJSON` may return anything.
  if (json === undefined || json.charCodeAt(0) !== 0x7b) {
    throw new HeddleError('EVENT_PAYLOAD_INVALID', `The payload of ${event} must be a JSON object`)
  }
  if (json.length * 3 > PAYLOAD_MAX_BYTES && Buffer.byteLength(json) > PAYLOAD_MAX_BYTES) {
    throw new HeddleError(
      'EVENT_PAYLOAD_TOO_LARGE',
      `The payload of ${event} has ${Buffer.byteLength(json)} bytes; ${PAYLOAD_MAX_BYTES} are allowed`,
    )
  }
  return { json, keys: keysOf(payload as Record<string, unknown>, json) }
}

/** The names of the last payload, and as they were joined: one text for many events is put together and hashed once. */
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
