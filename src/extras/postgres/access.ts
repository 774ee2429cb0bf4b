// Where the server is, and how a connection to it is opened.
import type pg from 'pg'
import type { ClientConfig } from 'pg'
import type { ThreadRef, ToolRuntime } from '../../contracts/tool.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { ownLimit } from '../../core/schedule/waiting.ts'
import { WAIT_MS } from '../../stores/sql/database.ts'
import { clientTls } from '../../stores/tls/client-tls.ts'
import { type SessionRules, sessionRules } from './session-rules.ts'

/** Milliseconds without traffic after which TCP checks whether the other side is still there. */
const KEEP_ALIVE_MS = 10_000
/** PostgreSQL truncates longer names. Characters. */
const NAME_MAX = 63

/** What a connection is opened with. */
export interface Access {
  readonly config: ClientConfig
  /** The password as text may go to this server: the connection is encrypted, or it was told so. */
  readonly mayTellPassword: boolean
  readonly session: SessionRules
}

export function accessOf(settings: ToolRuntime['settings'], thread: ThreadRef): Access {
  const { rdbHost, rdbPort, rdbUser, rdbPassword, rdbDatabase, replicaId } = settings
  const { rdbTls, rdbCaFile, rdbAllowCleartextPassword } = settings
  const place = thread.kind === 'primary' ? 'primary' : `lane ${thread.index}`
  const config: ClientConfig = {
    host: rdbHost,
    port: rdbPort,
    user: rdbUser,
    // A function, because pg looks for a password in other places when it gets none.
    password: () => rdbPassword ?? '',
    database: rdbDatabase,
    // Said, because pg would read PGSSLMODE, which a lane does not have.
    ssl: clientTls(rdbTls, rdbCaFile) ?? false,
    application_name: `heddle ${place} ${replicaId}`.slice(0, NAME_MAX),
    // No settings of the session: poolers refuse or drop them. See session.ts.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
  return {
    config,
    mayTellPassword: rdbTls !== 'off' || rdbAllowCleartextPassword,
    // The primary runs statements of the runtime alone: handlers run in lanes.
    session: sessionRules(settings, thread.kind === 'primary'),
  }
}

/** @throws the error of the driver or the server */
export function connect(client: pg.Client, { mayTellPassword }: Access): Promise<unknown> {
  const opened = client.connect()
  const { connection } = client
  if (!mayTellPassword) {
    // pg answers with the password: its listener, which `connect` has added, must be gone, whatever the server asked for before.
    connection.removeAllListeners('authenticationCleartextPassword')
    connection.on('authenticationCleartextPassword', () => connection.emit('error', cleartextRefused()))
  }
  // The driver's own limit counts wall time.
  const cancel = ownLimit(WAIT_MS, () => connection.stream.destroy(new Error('timeout expired')))
  void opened.then(cancel, cancel)
  return opened
}

/** The server asks for the password as text, and nothing hides it. */
function cleartextRefused(): DbError {
  return new DbError(
    'unavailable',
    'The server asks for the password as text, and the connection is not encrypted: set RDB_TLS, let the server ask with scram-sha-256, or set RDB_ALLOW_CLEARTEXT_PASSWORD=true',
  )
}
