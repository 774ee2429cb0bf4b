import { CATALOGUE, type ErrorCode } from './catalogue.ts'
import { codeOf } from './description.ts'

/** Whose fault a failed tool call is: of who called, when the tool has answered as it should, else of the tool. */
export type Fault = 'caller' | 'tool'

/** Refusals of an input that are answered with 500 where they reach a client, since a plugin has made the input. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'AUTH_ABANDONED',
  'AUTH_INVALID_INPUT',
  'EVENT_BUS_NO_SUBSCRIBER',
  'EVENT_CONTRACT',
  'EVENT_HANDLER_FAILED',
  'EVENT_NAME_INVALID',
  'EVENT_OPTIONS_INVALID',
  'EVENT_PAYLOAD_INVALID',
  'EVENT_PAYLOAD_TOO_LARGE',
  'SCHEDULER_INVALID',
  'STATE_NOT_A_NUMBER',
  'STATE_OPTIONS_INVALID',
  'STATE_VALUE_INVALID',
])

/** The database works: it has refused rows that break a rule, or lost a race that the caller may run again. */
const REFUSED_KINDS: ReadonlySet<unknown> = new Set([
  'unique_violation',
  'foreign_key_violation',
  'not_null_violation',
  'check_violation',
  'serialization',
])

/**
 * Whose fault a failed call is, by what it threw.
 * @param runsCallersWork the call runs a function of its caller, as `db.transaction` does: then an error that is not the runtime's is of that function
 */
export function faultOf(thrown: unknown, runsCallersWork: boolean): Fault {
  const code = codeOf(thrown)
  if (code === undefined || !Object.hasOwn(CATALOGUE, code)) return runsCallersWork ? 'caller' : 'tool'
  if (code === 'DB_ERROR') return REFUSED_KINDS.has((thrown as { kind?: unknown }).kind) ? 'caller' : 'tool'
  const [status] = CATALOGUE[code as ErrorCode]
  return REFUSALS.has(code) || status < 500 ? 'caller' : 'tool'
}
