/**
 * How a place in a trace travels: W3C `traceparent` (55 characters, version 00), and behind it `tracestate`, if there is any.
 * Empty: nowhere. Source: https://www.w3.org/TR/trace-context/
 */
export type Carrier = string

export const NO_CARRIER: Carrier = ''

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const TRACEPARENT_LENGTH = 55
/** Where the two ids stand, and how many digits they have. */
export const TRACE_ID_AT = 3
export const TRACE_ID_DIGITS = 32
export const SPAN_ID_AT = 36
export const SPAN_ID_DIGITS = 16
/** A longer one is left behind, as W3C Trace Context allows. */
const TRACESTATE_MAX_LENGTH = 512

/** A carrier of what came from outside; empty when it is none. */
export function carrierOf(traceparent: unknown, tracestate: unknown): Carrier {
  if (typeof traceparent !== 'string' || traceparent === '' || !TRACEPARENT.test(traceparent)) return NO_CARRIER
  const hasState = typeof tracestate === 'string' && tracestate.length <= TRACESTATE_MAX_LENGTH
  return hasState ? traceparent + tracestate : traceparent
}

export const traceparentOf = (carrier: Carrier): string => carrier.slice(0, TRACEPARENT_LENGTH)
export const tracestateOf = (carrier: Carrier): string => carrier.slice(TRACEPARENT_LENGTH)
export const traceIdOf = (carrier: Carrier): string => carrier.slice(TRACE_ID_AT, TRACE_ID_AT + TRACE_ID_DIGITS)
export const spanIdOf = (carrier: Carrier): string => carrier.slice(SPAN_ID_AT, SPAN_ID_AT + SPAN_ID_DIGITS)
const ODD_DIGITS = '13579bdf'

/** The flag `sampled`: the lowest bit of the last digit. */
export const isSampled = (carrier: Carrier): boolean =>
  carrier.length >= TRACEPARENT_LENGTH && ODD_DIGITS.includes(carrier[TRACEPARENT_LENGTH - 1]!)

/** The trace that a record may point to; null when nobody has exported it. */
export const sampledTraceIdOf = (carrier: Carrier): string | null => (isSampled(carrier) ? traceIdOf(carrier) : null)
