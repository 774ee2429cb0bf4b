// Errors of the server and of its connections.
import type { ClientConfig } from 'pg'
import { DbError, type DbErrorKind } from '../../core/errors/catalogue.ts'
import { codeOf, isInstance, messageOf } from '../../core/errors/description.ts'
import { tlsAdvice } from '../../stores/tls/client-tls.ts'

/** The transaction, or the server, takes no writes. */
export const READ_ONLY_STATE = '25006'
// https://www.postgresql.org/docs/current/errcodes-appendix.html; what is not listed goes by its class, the first two characters.
const KINDS: Record<string, DbErrorKind> = {
  '23505': 'unique_violation',
  '23503': 'foreign_key_violation',
  // ON DELETE RESTRICT, from PostgreSQL 18 on.
  '23001': 'foreign_key_violation',
  '23502': 'not_null_violation',
  '23514': 'check_violation',
  '40001': 'serialization',
  '40P01': 'serialization',
  '25P03': 'timeout',
  '25P04': 'timeout',
  '55P03': 'timeout',
  '57014': 'timeout',
  [READ_ONLY_STATE]: 'unavailable',
  '3D000': 'unavailable',
  // A prepared statement is not there: the session is another one, or somebody has emptied it.
  '26000': 'unavailable',
  XX001: 'unavailable',
  XX002: 'unavailable',
  // Not allowed to this user: the statement itself is right.
  '42501': 'other',
}
const KINDS_OF_CLASSES: Record<string, DbErrorKind> = {
  '08': 'unavailable',
  '28': 'unavailable',
  '42': 'syntax',
  '53': 'unavailable',
  '57': 'unavailable',
  '58': 'unavailable',
}
/** Explanations of messages that somebody who knows SQLite would not understand. */
const ADVICE: Record<string, string> = {
  '42P08': 'it is used with different types: pass the value twice, or state its type, CAST($1 AS BIGINT)',
  '26000':
    'the session is not the one that was opened: behind a pooler that does not keep sessions set RDB_POOLER=transaction, or let it keep them (PgBouncer: pool_mode=session)',
  '42P18': 'nothing determines its type: state it, CAST($1 AS TEXT)',
}
const LOST = 'the connection to the server that RDB_HOST and RDB_PORT name was lost'
/** SQLSTATE: five digits and capital letters. Node's error codes have another length, or an underscore. */
const SQLSTATE = /^[0-9A-Z]{5}$/

/** The SQLSTATE of an error from the server; empty for any other error. */
export function sqlStateOf(thrown: unknown): string {
  const { code, severity } = (thrown ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && SQLSTATE.test(code) && severity !== undefined ? code : ''
}

/** The DbError for anything that the driver threw: with its message, and with advice where there is some. */
export function toDbError(thrown: unknown): DbError {
  // A new error: one fault of a connection may fail many statements, and each error needs its own stack.
  if (isInstance(thrown, DbError)) return new DbError(thrown.kind, thrown.message, { cause: thrown.cause ?? thrown })
  const state = sqlStateOf(thrown)
  const told = state === '' ? LOST : ADVICE[state]
  const advice = told === undefined ? '' : ` (${told})`
  return new DbError(kindOf(state), messageOf(thrown) + advice, { cause: thrown })
}

/** An error that the server did not send means that the connection was lost. */
function kindOf(state: string): DbErrorKind {
  return state === '' ? 'unavailable' : (KINDS[state] ?? KINDS_OF_CLASSES[state.slice(0, 2)] ?? 'other')
}

/** True when the connection cannot be used any more: it was lost, or the server is about to end it. */
export function endsConnection(thrown: unknown): boolean {
  if (isInstance(thrown, DbError)) return thrown.kind === 'unavailable'
  const state = sqlStateOf(thrown)
  return state === '25P03' || state === '25P04' || kindOf(state) === 'unavailable'
}

/** The other side has ended the connection, SQLSTATE: an administrator, the crash of another session, nothing done for too long. */
const ENDED_STATES: ReadonlySet<string> = new Set(['57P01', '57P02', '57P05'])
const ENDED_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])

/** Most connections in place of one that was ended before it was used. */
export const OPEN_AGAIN = 9

/** The driver refuses what is sent on an ended connection without saying why. @param end why it ended */
export function reasonOf(thrown: unknown, end: unknown): unknown {
  return messageOf(thrown).endsWith('is not queryable') ? (end ?? thrown) : thrown
}

/** True when a connection was ended while it was being opened, by a server that had taken it: the next one may be kept. */
export function isCutShort(thrown: unknown): boolean {
  const state = sqlStateOf(thrown)
  if (state !== '') return ENDED_STATES.has(state)
  if (isInstance(thrown, DbError)) return false
  return ENDED_CODES.has(codeOf(thrown) ?? '') || messageOf(thrown).startsWith('Connection terminated')
}

interface Failed {
  readonly failure: unknown
  /** Nothing of the statement was sent. */
  readonly isUnsent: boolean
  /** The statement has had its BindComplete. */
  readonly isBound: boolean
}

/**
 * True when the connection had ended before the statement ran. The server ends an idle one because it is told to (57P01) or it was idle
 * for too long (57P05): it says so in front of the answer to what was sent meanwhile, which it has not read. What it has begun is
 * answered with at least a BindComplete before this error, so a statement without one has not run.
 */
export function hasNotRun({ failure, isUnsent, isBound }: Failed): boolean {
  const state = sqlStateOf(failure)
  return isUnsent || (!isBound && (state === '57P01' || state === '57P05'))
}

/** True when the server has rolled back what it ran because of another transaction: a conflict, or a deadlock. */
export function isConflict(thrown: unknown): boolean {
  return kindOf(sqlStateOf(thrown)) === 'serialization'
}

/** True when the server has ended it because two transactions waited for each other. */
export function isDeadlock(thrown: unknown): boolean {
  return sqlStateOf(thrown) === '40P01'
}

/**
 * True when the server refused a prepared statement because a migration has changed its table since. The statement has not run.
 * @param thrown the server's error
 */
export function isStalePlan(thrown: unknown): boolean {
  const state = sqlStateOf(thrown)
  return state === '26000' || (state === '0A000' && messageOf(thrown).includes('cached plan'))
}

/** The error for a connection that could not be opened. It says why, and what to do about it. */
export function toConnectError(thrown: unknown, config: ClientConfig): DbError {
  if (isInstance(thrown, DbError)) return toDbError(thrown)
  const address = `${config.host}:${config.port}`
  const fault = firstOf(thrown)
  const message = messageOf(fault)
  if (message === 'timeout expired' || message === 'Query read timeout') {
    return new DbError(
      'unavailable',
      `No answer from ${address} within the connection timeout: start the server, or correct RDB_HOST and RDB_PORT (or DATABASE_URL)`,
      {
        cause: thrown,
      },
    )
  }
  return new DbError('unavailable', `${message} (${adviceFor(fault, message, address, config)})`, { cause: thrown })
}

/** A host with several addresses fails with one error for all of them, which does not say why. */
function firstOf(thrown: unknown): unknown {
  return thrown instanceof AggregateError && thrown.errors.length > 0 ? thrown.errors[0] : thrown
}

function adviceFor(
  fault: unknown,
  message: string,
  address: string,
  { user, database, host, port }: ClientConfig,
): string {
  const code = codeOf(fault)
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens on ${address}: start the server, or correct RDB_HOST and RDB_PORT (or DATABASE_URL)`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `there is no host "${host}": correct RDB_HOST`
    case '3D000':
      return `create it: createdb -h ${host} -p ${port} -U ${user} ${database}; or correct RDB_DATABASE`
    case '28P01':
      return 'correct RDB_USER and RDB_PASSWORD'
    case '28000':
      return `the server does not accept "${user}" from this address: correct RDB_USER, or its pg_hba.conf; if it requires TLS, set RDB_TLS`
    case '57P01':
    case '57P02':
    case '57P03':
      return `the server on ${address} starts or stops: wait for it, or correct RDB_HOST and RDB_PORT`
    case '53300':
      return 'lower RDB_MAX_POOL, or raise max_connections of the server'
    default:
      if (isCutShort(fault))
        return `what listens on ${address} ends connections as they are opened: read its log, or correct RDB_HOST and RDB_PORT`
      if (message.includes('max_client_conn')) return 'lower RDB_MAX_POOL, or raise max_client_conn of the pooler'
      if (message.includes('does not support SSL'))
        return 'nothing was sent: switch TLS on at the server, or set RDB_TLS=off where the network is trusted'
      if (message.includes('password must be')) return 'the server asks for a password: set RDB_PASSWORD'
      return (
        tlsAdvice(code, 'RDB') ?? `${database} on ${address}: see RDB_HOST, RDB_PORT and RDB_DATABASE (or DATABASE_URL)`
      )
  }
}
