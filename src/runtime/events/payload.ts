import { HeddleError } from '../../core/errors/catalogue.ts'

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
    json = JSON.stringify(payload)
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

function keysOf(payload: Record<string, unknown>, json: string): string {
  if (typeof payload.toJSON === 'function') return Object.keys(JSON.parse(json)).join('\0')
  let keys = ''
  for (const key of Object.keys(payload)) {
    const value = payload[key]
    // JSON leaves these out.
    if (value === undefined || typeof value === 'function' || typeof value === 'symbol') continue
    keys += keys === '' ? key : `\0${key}`
  }
  return keys
}

export const splitKeys = (keys: string): string[] => (keys === '' ? [] : keys.split('\0'))

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1) : typeof value
}
