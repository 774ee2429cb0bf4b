// Errors on their way between threads.
import { CATALOGUE, type ErrorCode, HeddleError } from './catalogue.ts'
import { describe } from './description.ts'

/** An error between threads: plain JSON, rebuilt by code on the other side. */
export interface WireError {
  message: string
  code?: string
  details?: unknown
  stack?: string
  /** Only of a subscriber that threw an `Unrecoverable`. */
  unrecoverable?: true
  /** Only of a subscriber whose delivery waits until a tool is back. */
  away?: true
}

export function toWire(thrown: unknown): WireError {
  const { details, ...wire } = describe(thrown)
  const json = jsonOf(details)
  // A copy: a value that was JSON once need not be so again.
  return json === undefined ? wire : { ...wire, details: JSON.parse(json) as unknown }
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
function jsonOf(details: unknown): string | undefined {
  try {
    return JSON.stringify(details)
  } catch {
    return undefined
  }
}
