import type { ClientConfig } from 'pg'
import type { ThreadRef, ToolRuntime } from '../../contracts/tool.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { TRANSACTION_IDLE_MS, WAIT_MS } from '../../stores/sql/limits.ts'
import { clientTls } from '../../stores/tls/client-tls.ts'

/** Milliseconds without traffic after which TCP checks whether the other side is still there. */
const KEEP_ALIVE_MS = 10_000
/** Milliseconds that the server waits longer than the tool itself. It ends transactions of a thread that is blocked. */
const IDLE_GRACE_MS = 5000
/** PostgreSQL truncates longer names. Characters. */
const NAME_MAX = 63

/** Settings that the decoders of values.ts and the token rules of sql-shape.ts need, whatever the settings of the server or the user are. */
const SESSION = {
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
}

export function connectionConfig(settings: ToolRuntime['settings'], thread: ThreadRef): ClientConfig {
  const { rdbHost, rdbPort, rdbUser, rdbPassword, rdbDatabase, rdbStatementTimeoutMs, replicaId } = settings
  const { rdbTls, rdbCaFile, rdbSchema } = settings
  const place = thread.kind === 'primary' ? 'primary' : `lane ${thread.index}`
  return {
    host: rdbHost,
    port: rdbPort,
    user: rdbUser,
    // A function, because pg looks for a password in other places when it gets none.
    password: () => rdbPassword ?? '',
    database: rdbDatabase,
    // Said, because pg would read PGSSLMODE, which a lane does not have.
    ssl: clientTls(rdbTls, rdbCaFile) ?? false,
    application_name: `heddle ${place} ${replicaId}`.slice(0, NAME_MAX),
    connectionTimeoutMillis: WAIT_MS,
    statement_timeout: rdbStatementTimeoutMs,
    idle_in_transaction_session_timeout: TRANSACTION_IDLE_MS + IDLE_GRACE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // Temporary tables last: they must not stand for others.
    options: Object.entries({ ...SESSION, search_path: `"${rdbSchema}",pg_temp` })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

/** The password as text may go to this server: the connection is encrypted, or it was told so. */
export function mayTellPassword({
  rdbTls,
  rdbAllowCleartextPassword,
}: Pick<ToolRuntime['settings'], 'rdbTls' | 'rdbAllowCleartextPassword'>): boolean {
  return rdbTls !== 'off' || rdbAllowCleartextPassword
}

/** The server asks for the password as text, and nothing hides it. */
export function cleartextRefused(): DbError {
  return new DbError(
    'unavailable',
    'The server asks for the password as text, and the connection is not encrypted: set RDB_TLS, let the server ask with scram-sha-256, or set RDB_ALLOW_CLEARTEXT_PASSWORD=true',
  )
}
