// Whether a connection has a session of its own, and what is set in it: a pooler may give each transaction another one.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance, messageOf } from '../../core/errors/description.ts'
import { WAIT_MS } from '../../stores/sql/database.ts'
import { type Access, connect } from './access.ts'
import { isCutShort, OPEN_AGAIN, reasonOf, sqlStateOf, toConnectError } from './failure.ts'
import { MARK } from './session-rules.ts'

const MARK_QUERY = `SELECT current_setting('${MARK}', true), pg_backend_pid()`

const WAY_OUT =
  'set RDB_POOLER=transaction, let the pooler keep sessions (PgBouncer: pool_mode=session), or set RDB_HOST and RDB_PORT to the server itself'

/** The cause of a `DbError`: the session is not the one that was opened, or not as it was set. */
class SessionFault extends Error {}

const addressOf = ({ config }: Access): string => `${config.host}:${config.port}`

/** @param what is wrong; default: the session was another one */
export function sessionFault(access: Access, what?: string): DbError {
  const found = what ?? `the pooler at ${addressOf(access)} does not keep sessions`
  const message = `RDB_POOLER is ${access.session.pooler}, and ${found}: ${WAY_OUT}`
  return new DbError('unavailable', message, { cause: new SessionFault(message) })
}

/** The last row of a text of one or more statements, by the simple protocol. @throws the error of the driver or the server */
async function ask(client: pg.Client, text: string): Promise<readonly unknown[]> {
  const query = { text, rowMode: 'array', query_timeout: WAIT_MS }
  const result = (await client.query(query as object as pg.QueryArrayConfig)) as object
  const last = (Array.isArray(result) ? result.at(-1) : result) as pg.QueryArrayResult
  return last.rows[0] ?? []
}

/** Makes a new connection the session that statements rely on. @throws DbError when there is none; the error of the driver or the server */
export async function openSession(client: pg.Client, access: Access, mark: string): Promise<void> {
  // First what harms nobody, in case that this is the session of many.
  await ask(client, `SELECT set_config('${MARK}', '${mark}', false)`)
  if ((await ask(client, MARK_QUERY))[0] !== mark) throw sessionFault(access)
  await setSession(client, access, mark)
}

/** Sets the session, and reads it back. @throws as `openSession` */
export async function setSession(client: pg.Client, access: Access, mark: string): Promise<void> {
  const wanted = await ask(client, access.session.reset(mark))
  const found = await ask(client, access.session.read)
  if (found[0] !== mark) throw sessionFault(access)
  compare(wanted, found, access)
}

/** @param wanted the values as the server has taken them @throws DbError */
function compare(wanted: readonly unknown[], found: readonly unknown[], access: Access): void {
  access.session.names.forEach((name, n) => {
    const value = found[n + 1]
    if (value !== wanted[n])
      throw sessionFault(access, `${name} is "${value}" at ${addressOf(access)} after it was set to "${wanted[n]}"`)
  })
}

/** Times that two connections of a probe take turns. */
const ROUNDS = 6
/** How long one may wait for the transaction of the other, milliseconds: a pooler may have a single session for both. */
const HOLD_MS = 500

/**
 * Finds out before anything depends on it whether the server, or the pooler in front of it, is as RDB_POOLER says.
 * @throws DATABASE_SESSION when it is not; DbError when it cannot be reached
 */
export async function probeSessions(access: Access): Promise<void> {
  for (let again = OPEN_AGAIN; ; again--) {
    try {
      return await probe(access)
    } catch (thrown) {
      if (again === 0 || !isCutShort((thrown as Error).cause)) throw thrown
    }
  }
}

async function probe(access: Access): Promise<void> {
  let end: unknown = null
  const clients: pg.Client[] = []
  const opened = async (): Promise<pg.Client> => {
    const client = new pg.Client(access.config)
    client.on('error', (thrown) => {
      end ??= thrown
    })
    clients.push(client)
    await connect(client, access)
    return client
  }
  try {
    const first = await opened()
    if (access.session.pooler === 'transaction') return await probeTransactions(first, access)
    // A server without room for both says so to whom it takes: one tells less, and is enough to start.
    const second = await opened().catch(() => null)
    await probeKept(second === null ? [first] : [first, second], access)
  } catch (thrown) {
    if (isSessionFault(thrown)) throw sessionRefused(thrown as Error)
    if (/pooling mode/.test(messageOf(thrown))) throw sessionRefused(sessionFault(access, messageOf(thrown)))
    throw toConnectError(reasonOf(thrown, end), access.config)
  } finally {
    for (const client of clients) client.connection.stream.destroy()
  }
}

/** Marks each session, and looks whether it stays with its connection while the other one is in a transaction. */
async function probeKept(clients: readonly pg.Client[], access: Access): Promise<void> {
  const seen = new Map<pg.Client, readonly unknown[]>()
  for (const client of clients) {
    const mark = randomBytes(9).toString('base64url')
    await ask(client, `SELECT set_config('${MARK}', '${mark}', false)`)
    const [found, pid] = await ask(client, MARK_QUERY)
    if (found !== mark) throw sessionFault(access)
    seen.set(client, [mark, pid])
  }
  const look = async (client: pg.Client): Promise<void> => {
    const found = await ask(client, MARK_QUERY)
    if (found.some((value, n) => value !== seen.get(client)![n])) throw sessionFault(access)
  }
  for (let round = 0; round < ROUNDS; round++) {
    const [holder, other] = round % 2 === 0 ? clients : [...clients].reverse()
    await ask(holder!, 'BEGIN')
    await look(holder!)
    const looked = other === undefined ? Promise.resolve() : look(other)
    const held = new Promise((resolve) => setTimeout(resolve, HOLD_MS).unref())
    await Promise.race([looked, held])
    await ask(holder!, 'COMMIT')
    await looked
  }
}

/** A transaction has one session, and takes the settings; a statement outside of one has the isolation that is promised. */
async function probeTransactions(client: pg.Client, access: Access): Promise<void> {
  const [isolation] = await ask(client, "SELECT current_setting('transaction_isolation')")
  if (isolation !== 'read committed') {
    const { user } = access.config
    throw sessionFault(
      access,
      `default_transaction_isolation is "${isolation}", which each statement would have to change: ALTER ROLE "${user}" SET default_transaction_isolation = 'read committed'; or`,
    )
  }
  const [pid] = await ask(client, `BEGIN; ${access.session.setLocal}; SELECT pg_backend_pid()`)
  const wanted = await ask(client, access.session.localQuery)
  const found = await ask(client, access.session.read)
  if ((await ask(client, 'SELECT pg_backend_pid()'))[0] !== pid)
    throw sessionFault(access, `the pooler at ${addressOf(access)} does not keep transactions`)
  compare(wanted, found, access)
  await ask(client, 'COMMIT')
}

/** The statement, or its connection, has met another session: it has not run. */
export const hasLostSession = (thrown: unknown): boolean => isSessionFault(thrown) || sqlStateOf(thrown) === '26000'

function isSessionFault(thrown: unknown): boolean {
  return isInstance(thrown, DbError) && thrown.cause instanceof SessionFault
}

/** What keeps the process from starting. */
function sessionRefused(thrown: Error): HeddleError {
  return new HeddleError('DATABASE_SESSION', thrown.message, { cause: thrown })
}

/** @throws DATABASE_SESSION in place of the error of one connection; else what it was given */
export function rethrowSession(thrown: unknown): never {
  throw isSessionFault(thrown) ? sessionRefused(thrown as Error) : thrown
}
