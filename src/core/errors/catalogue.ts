// Every error of the runtime: its code, its status, its message, whose fault it is, and how it crosses threads.
import { causeOf, codeOf, describe, member, readable } from './description.ts'

/**
 * Every error of the runtime: its code, its HTTP status if it reaches a client, its default message. `caller`: the refusal of an input, which is
 * answered with 500 all the same where it reaches a client, since a plugin has made the input. `away`: what the tool needs cannot be reached.
 * `setup`: a mistake in the configuration, with which another start would fail, too.
 */
export const CATALOGUE = {
  // configuration and boot
  CONFIG_MISSING: [500, 'A required variable is not set'],
  CONFIG_INVALID: [500, 'A variable does not parse'],
  PACKAGE_MISSING: [500, 'A package is not installed', 'setup'],
  TOOL_MISSING: [500, 'A tool is not installed'],
  TOOL_DUPLICATE: [500, 'Two folders contain a tool of the same name'],
  TOOL_INVALID: [500, 'A folder contains no tool'],
  TOOL_UNAVAILABLE: [503, 'A tool did not boot', 'away'],
  PLUGIN_INVALID: [500, 'A file contains no plugin'],
  PLUGIN_DUPLICATE: [500, 'Two plugins have the same name'],
  PLUGIN_UNGUARDED: [500, 'The hooks of a plugin did not boot'],
  PLUGIN_BARRED: [500, 'A plugin brought down a lane while it booted'],
  PLUGIN_SET_ASIDE: [503, 'This part of the service is stopped for a while'],
  REPLICA_ID_TAKEN: [500, 'Another process has this REPLICA_ID', 'setup'],
  DATABASE_TAKEN: [500, 'Another process has the event store of this database file', 'setup'],
  DATABASE_INVALID: [500, 'SQLITE_PATH is not a database of this service', 'setup'],
  DATABASE_FOREIGN: [500, 'A table of the runtime belongs to another role of the database', 'setup'],
  DATABASE_ENCODING: [500, 'The database does not store every character', 'setup'],
  DATABASE_SESSION: [500, 'A pooler in front of the database is not what RDB_POOLER says', 'setup'],
  MIGRATION_MISNAMED: [500, 'What stands among the migrations is not named as one', 'setup'],
  MIGRATION_INVALID: [500, 'The migrations cannot be applied'],
  // HTTP
  HTTP_LISTEN: [500, 'The server cannot listen on this address'],
  HTTP_BAD_REQUEST: [400, 'Malformed request'],
  HTTP_BODY_BROKEN: [400, 'The request has ended before its body was complete'],
  HTTP_PATH_INVALID: [500, 'A route path is not valid'],
  HTTP_ROUTE_TAKEN: [500, 'A route is already registered'],
  HTTP_HOOK_INVALID: [500, 'A hook is not valid'],
  HTTP_HEADER_INVALID: [500, 'A response header is not valid'],
  HTTP_STATUS_INVALID: [500, 'A response status is not valid'],
  HTTP_ANSWER_INVALID: [500, 'JSON cannot hold an answer'],
  HTTP_COMMIT_INVALID: [500, 'context.commit cannot store an answer'],
  HTTP_RESPONSE_INVALID: [500, 'A response does not fit its schema'],
  HTTP_IDEMPOTENCY_KEY: [400, 'The header Idempotency-Key is missing or malformed'],
  HTTP_AUTH_MISSING: [401, 'Missing authorization token'],
  HTTP_AUTH_INVALID: [401, 'Invalid or expired token'],
  HTTP_ORIGIN_REFUSED: [403, 'Pages of other origins may not do this, unless HTTP_CORS_ORIGINS names them'],
  HTTP_READ_ONLY: [403, 'This token may look and change nothing'],
  HTTP_NOT_FOUND: [404, 'Not found'],
  HTTP_SYSTEM_CLOSED: [404, '/system is closed in production behind a proxy: set SYSTEM_TOKEN or SYSTEM_PORT'],
  HTTP_METHOD_NOT_ALLOWED: [405, 'Method not allowed'],
  HTTP_REQUEST_TIMEOUT: [408, 'The request body did not arrive in time'],
  HTTP_IDEMPOTENCY_RUNNING: [409, 'A request with this Idempotency-Key is still running'],
  HTTP_BODY_TOO_LARGE: [413, 'The request body is too large'],
  HTTP_PRECONDITION: [412, 'It is not as the request wants it to be'],
  HTTP_MEDIA_TYPE: [415, 'Unsupported media type'],
  HTTP_HOST_REFUSED: [421, 'This service has another host name'],
  HTTP_VALIDATION: [422, 'Validation failed'],
  HTTP_IDEMPOTENCY_REUSED: [422, 'This Idempotency-Key came with another request before'],
  HTTP_UPGRADE_REQUIRED: [426, 'This path speaks WebSocket, version 13'],
  HTTP_HEADERS_TOO_LARGE: [431, 'The request header fields are too large'],
  HTTP_INTERNAL: [500, 'Internal server error'],
  HTTP_OVERLOADED: [503, 'The service is overloaded'],
  HTTP_STARTING: [503, 'The service is starting'],
  HTTP_DRAINING: [503, 'The service is shutting down'],
  HTTP_HANDLER_TIMEOUT: [504, 'The handler did not answer in time'],
  HTTP_LANE_STALLED: [504, 'The handler blocked its thread and was stopped'],
  HTTP_VERSION: [505, 'Only HTTP/1.1 is spoken here'],
  // events
  EVENT_NAME_INVALID: [500, 'An event name is not valid', 'caller'],
  EVENT_PAYLOAD_INVALID: [500, 'An event payload is not a JSON object', 'caller'],
  EVENT_PAYLOAD_TOO_LARGE: [500, 'An event payload is too large', 'caller'],
  EVENT_OPTIONS_INVALID: [500, 'An option of publish or subscribe is not valid', 'caller'],
  EVENT_CONTRACT: [500, 'An event payload does not fit its contract', 'caller'],
  EVENT_NAMES_LIMIT: [500, 'A plugin publishes too many different events'],
  EVENT_SUBSCRIPTIONS_LIMIT: [500, 'A plugin has too many subscriptions'],
  EVENT_BUS_FULL: [503, 'The event queue is full'],
  EVENT_BUS_UNAVAILABLE: [503, 'The store does not accept events', 'away'],
  EVENT_UNKNOWN: [500, 'Nothing is known of the event', 'caller'],
  EVENT_BUS_NO_SUBSCRIBER: [500, 'The requested event has no subscriber', 'caller'],
  EVENT_BUS_REQUEST_TIMEOUT: [500, 'No subscriber replied in time'],
  EVENT_STORE_BROKEN: [500, 'A rule of the event store is broken'],
  DELIVERY_LOST: [500, "The delivery is no longer this handler's", 'caller'],
  EVENT_HANDLER_FAILED: [500, 'A subscriber failed', 'caller'],
  // tools
  DB_ERROR: [500, 'A database statement failed'],
  DB_CONTENDED: [503, 'Too many want the same rows at the moment', 'caller'],
  STATE_NOT_A_NUMBER: [500, 'The key does not hold an integer', 'caller'],
  STATE_VALUE_INVALID: [500, 'A state value is not JSON', 'caller'],
  STATE_FULL: [503, 'The state store is full'],
  STATE_QUOTA: [503, 'A plugin or a namespace has its share of the state store'],
  STATE_OPTIONS_INVALID: [500, 'A key or an option of state is not valid', 'caller'],
  KV_UNAVAILABLE: [503, 'The key-value store cannot be reached or does not answer', 'away'],
  KV_REFUSED: [500, 'The key-value store refuses the connection or the command'],
  KV_READONLY: [503, 'The key-value store does not accept writes', 'away'],
  KV_FULL: [503, 'The key-value store is full'],
  KV_WRONG_TYPE: [500, 'A key of the key-value store holds another type'],
  AUTH_INVALID_INPUT: [500, 'A password or claim is not valid', 'caller'],
  AUTH_BUSY: [503, 'Too many passwords are being hashed'],
  AUTH_UNAVAILABLE: [503, 'Tokens cannot be checked at the moment', 'away'],
  AUTH_REVOCATIONS_FULL: [503, 'Too many tokens are revoked'],
  AUTH_ABANDONED: [503, 'The request was over before its password was hashed', 'caller'],
  SCHEDULER_INVALID: [500, 'A job is not valid', 'caller'],
  JOB_UNKNOWN: [500, 'There is no such job', 'caller'],
  JOB_RUNNING: [500, 'The job is running', 'caller'],
  JOB_NOT_STARTED: [503, 'The job cannot run now', 'caller'],
  // history
  HISTORY_OFF: [404, 'No history of requests is kept: start the process with HISTORY_ENABLED=true'],
  // threads
  LANE_BUSY: [503, 'The thread has too many open calls'],
  LANE_BOOT: [500, 'A lane did not boot'],
  INTERNAL: [500, 'Internal error'],
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof CATALOGUE

/** Every error of the runtime. Narrow by `code`, never by class or message. */
export class HeddleError extends Error {
  readonly code: ErrorCode
  /** The HTTP status if a handler lets it reach a client. */
  readonly status: number
  /** Further information as JSON, for example the faults of a validation. */
  readonly details: unknown

  constructor(code: ErrorCode, message?: string, options?: { cause?: unknown; details?: unknown }) {
    super(message ?? CATALOGUE[code][1], options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HeddleError'
    this.code = code
    this.status = CATALOGUE[code][0]
    this.details = options?.details
  }
}

/** Whose fault a failed tool call is: of who called, when the tool has answered as it should, else of the tool. */
export type Fault = 'caller' | 'tool'

/** The database works: it has refused rows that break a rule, or lost a race that the caller may run again. */
const REFUSED_KINDS: ReadonlySet<unknown> = new Set([
  'unique_violation',
  'foreign_key_violation',
  'not_null_violation',
  'check_violation',
  'serialization',
])

/** Calls that run a function of their caller, and reject with what it throws. */
export const CALLERS_WORK: ReadonlySet<string> = new Set(['db.transaction', 'state.cached'])

/**
 * Whose fault a failed call is, by what it threw.
 * @param runsCallersWork it is one of `CALLERS_WORK`: then an error that is not the runtime's is of that function
 */
export function faultOf(thrown: unknown, runsCallersWork: boolean): Fault {
  const entry = entryOf(thrown)
  if (entry === undefined) return runsCallersWork ? 'caller' : 'tool'
  if (entry === CATALOGUE.DB_ERROR) return REFUSED_KINDS.has((thrown as { kind?: unknown }).kind) ? 'caller' : 'tool'
  const [status, , fault] = entry
  if (fault === 'away' || fault === 'setup') return 'tool'
  return fault ?? (status < 500 ? 'caller' : 'tool')
}

type Entry = readonly [status: number, message: string, fault?: 'caller' | 'away' | 'setup']

/** Undefined for an error that is not the runtime's. */
function entryOf(thrown: unknown): Entry | undefined {
  const code = codeOf(thrown)
  return code !== undefined && Object.hasOwn(CATALOGUE, code) ? CATALOGUE[code as ErrorCode] : undefined
}

/** Causes of causes that are looked at: a cause may be its own. */
const CAUSES_MAX = 5

/** True when a tool does not take this at the moment: the error says so, or one of its causes. The same call may succeed later. */
export function isAway(thrown: unknown): boolean {
  let each = thrown
  for (let depth = 0; depth <= CAUSES_MAX; depth++) {
    const entry = entryOf(each)
    if (entry?.[2] === 'away') return true
    if (entry === CATALOGUE.DB_ERROR && member(each, 'kind') === 'unavailable') return true
    if (entry === CATALOGUE.DB_CONTENDED) return true
    each = causeOf(each)
  }
  return false
}

/** A package that what was asked for needs, and nobody has installed. */
export const isPackageMissing = (error: unknown): boolean => entryOf(error) === CATALOGUE.PACKAGE_MISSING

/** A mistake in the configuration: another start with the same would not help. */
export const isMisconfigured = (error: unknown): boolean => entryOf(error)?.[2] === 'setup'

/**
 * Thrown by a subscriber, it says that another attempt would fail, too: the delivery becomes a dead letter at once, whatever its `retries`.
 * What counts is the value that was thrown, or that the handler's promise was rejected with: an instance of this class or of a class that
 * extends it. One that is the `cause` of another error, or among those of an AggregateError, is not seen.
 */
export class Unrecoverable extends Error {
  override name = 'Unrecoverable'
}

/** The longest that an event may be put off. */
const LATER_MAX_MS = 30 * 86_400_000

/**
 * Thrown by a subscriber, it puts the event off: it is delivered again after that time, and no attempt is counted. For a partner that answers 429.
 * What counts is the value that was thrown, as with `Unrecoverable`.
 */
export class RetryLater extends Error {
  override name = 'RetryLater'
  /** Milliseconds. */
  readonly ms: number
  /** The subscriber gets no other event meanwhile. */
  readonly all: boolean

  /**
   * @param ms from 1 to 2,592,000,000 (30 days)
   * @throws EVENT_OPTIONS_INVALID
   */
  constructor(ms: number, { all = false, message }: { all?: boolean; message?: string } = {}) {
    super(message ?? `Put off by ${ms} ms`)
    if (!(typeof ms === 'number' && ms >= 1 && ms <= LATER_MAX_MS))
      throw new HeddleError('EVENT_OPTIONS_INVALID', `RetryLater takes 1 to ${LATER_MAX_MS} ms, got ${String(ms)}`)
    this.ms = Math.ceil(ms)
    this.all = all === true
  }
}

/** Why a statement failed; the same on every database. */
export type DbErrorKind =
  | 'unique_violation'
  | 'foreign_key_violation'
  | 'not_null_violation'
  | 'check_violation'
  | 'serialization'
  | 'timeout'
  | 'unavailable'
  | 'syntax'
  | 'other'

/** A failed database statement. `kind` is the same on every database; `cause` is the driver's own error. What remains of `serialization` after its repeats has the code DB_CONTENDED. */
export class DbError extends HeddleError {
  readonly kind: DbErrorKind

  constructor(kind: DbErrorKind, message: string, options?: { cause?: unknown; code?: 'DB_CONTENDED' }) {
    super(options?.code ?? 'DB_ERROR', message, options)
    this.name = 'DbError'
    this.kind = kind
  }

  /** The statement itself was right: the same one may succeed later. */
  get isPassing(): boolean {
    return this.kind === 'unavailable' || this.kind === 'timeout'
  }
}

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
  /** Only of a subscriber that threw a `RetryLater`. */
  later?: { ms: number; all: boolean }
}

export function toWire(thrown: unknown): WireError {
  const { details, ...wire } = describe(thrown)
  // Errors of libraries may carry any value. One that cannot be sent must not end the thread that reports the error.
  const json = readable(() => JSON.stringify(details))
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
