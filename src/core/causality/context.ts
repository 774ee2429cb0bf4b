// The cause of the code that is running, and the context of a span as text: read, checked and taken apart.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CausalContext, TraceContext } from '../../contracts/tracing.ts'

/** Of an event of the runtime itself, and of whatever has no cause. */
export const NO_CAUSE: CausalContext = { eventId: null, requestId: null, trace: null, origin: null }

/** One instance per thread, one `run` per task. On Node 22 each instance uses promise hooks where the context is no frame, which cost time, so there are no others. */
export const causality = new AsyncLocalStorage<CausalContext>()

export const NO_TRACE_CONTEXT: TraceContext = ''
/**
 * Of a request that begins a trace and is not sampled. Its ids are made by the thread of its handler when somebody asks for them, which
 * few handlers do. It goes from the listener to that thread, and nowhere else.
 */
export const UNNAMED_TRACE: TraceContext = '-'

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const TRACEPARENT_LENGTH = 55
/** Offsets and lengths of the two ids. */
const TRACE_ID_AT = 3
const TRACE_ID_DIGITS = 32
const SPAN_ID_AT = 36
const SPAN_ID_DIGITS = 16
/** Maximum length of a `tracestate` that goes on, characters. Of a longer one, entries beyond `TRACESTATE_LARGE_ENTRY` go first, then the last ones. */
const TRACESTATE_MAX_LENGTH = 512
const TRACESTATE_LARGE_ENTRY = 128
const TRACESTATE_MAX_MEMBERS = 32
const KEY_CHARACTER = '[a-z0-9_*/-]'
/** A key with or without a tenant, and a value of visible characters and blanks without comma and equals sign. Level 2 lets a key begin with a digit. */
const TRACESTATE_MEMBER = new RegExp(
  `^([a-z0-9]${KEY_CHARACTER}{0,255}|[a-z0-9]${KEY_CHARACTER}{0,240}@[a-z]${KEY_CHARACTER}{0,13})=[ -+\\--<>-~]{0,255}[!-+\\--<>-~]$`,
)

/**
 * Returns a `tracestate` header without the blanks around its members and without empty members. Empty if one member is invalid, a key
 * comes twice or there are more than 32. Source: W3C Trace Context, section 3.3.
 */
export function tracestateFrom(text: string): string {
  if (text === '') return ''
  const members = text.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
  const given = members.filter((member) => member !== '')
  if (given.length > TRACESTATE_MAX_MEMBERS) return ''
  const keys = given.map((member) => TRACESTATE_MEMBER.exec(member)?.[1])
  if (keys.includes(undefined) || new Set(keys).size !== keys.length) return ''
  while (given.join(',').length > TRACESTATE_MAX_LENGTH) {
    const large = given.findLastIndex((member) => member.length > TRACESTATE_LARGE_ENTRY)
    given.splice(large, 1)
  }
  return given.join(',')
}

/** Checks what came from outside; empty when it is not a valid `traceparent`. */
export function traceContextOf(traceparent: unknown, tracestate: unknown): TraceContext {
  if (typeof traceparent !== 'string' || traceparent === '' || !TRACEPARENT.test(traceparent)) return NO_TRACE_CONTEXT
  const hasState = typeof tracestate === 'string' && tracestate.length <= TRACESTATE_MAX_LENGTH
  return hasState ? traceparent + tracestate : traceparent
}

export const traceparentOf = (traceContext: TraceContext): string => traceContext.slice(0, TRACEPARENT_LENGTH)
export const tracestateOf = (traceContext: TraceContext): string => traceContext.slice(TRACEPARENT_LENGTH)
export const traceIdOf = (traceContext: TraceContext): string =>
  traceContext.slice(TRACE_ID_AT, TRACE_ID_AT + TRACE_ID_DIGITS)
export const spanIdOf = (traceContext: TraceContext): string =>
  traceContext.slice(SPAN_ID_AT, SPAN_ID_AT + SPAN_ID_DIGITS)

const ODD_DIGITS = '13579bdf'

/** The flag `sampled`: the lowest bit of the last digit. */
export const isSampled = (traceContext: TraceContext): boolean =>
  traceContext.length >= TRACEPARENT_LENGTH && ODD_DIGITS.includes(traceContext[TRACEPARENT_LENGTH - 1]!)

/** The trace id that a record may name; null when the trace is not exported. */
export const sampledTraceIdOf = (traceContext: TraceContext): string | null =>
  isSampled(traceContext) ? traceIdOf(traceContext) : null
