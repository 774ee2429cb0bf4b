import { CATALOGUE, type ErrorCode, HeddleError } from './catalogue.ts'

/** An error between threads: plain JSON, rebuilt by code on the other side. */
export interface WireError {
  message: string
  code?: string
  details?: unknown
  stack?: string
}

export function toWire(thrown: unknown): WireError {
  if (!(thrown instanceof Error)) return { message: describe(thrown) }
  const { code, details } = thrown as { code?: unknown; details?: unknown }
  const wire: WireError = { message: thrown.message, stack: thrown.stack }
  if (typeof code === 'string') wire.code = code
  if (isJson(details)) wire.details = details
  return wire
}

export function fromWire(wire: WireError): Error {
  const known = wire.code !== undefined && Object.hasOwn(CATALOGUE, wire.code)
  const error = known
    ? new HeddleError(wire.code as ErrorCode, wire.message, { details: wire.details })
    : Object.assign(new Error(wire.message), wire.code === undefined ? {} : { code: wire.code })
  if (wire.stack) error.stack = wire.stack
  return error
}

/** Errors of libraries may carry any value. One that cannot be sent must not end the thread that reports the error. */
function isJson(details: unknown): boolean {
  try {
    return JSON.stringify(details) !== undefined
  } catch {
    return false
  }
}

/** The message of anything that was thrown; never throws itself. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return String(thrown.message) || String(thrown.name)
  } catch {
    // An error whose `message` throws is shown by its type.
  }
  return describe(thrown)
}

function describe(thrown: unknown): string {
  try {
    return typeof thrown === 'string' ? thrown : (JSON.stringify(thrown) ?? String(thrown))
  } catch {
    return Object.prototype.toString.call(thrown)
  }
}
