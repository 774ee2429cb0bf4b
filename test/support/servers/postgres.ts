import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from '../port.ts'
import { makePostgresData } from './postgres-data.ts'
import { programFor, type ServerOwner } from './provide.ts'
import { makeServerFolder, removeServerFolder } from './server-folder.ts'
import { ServerProcess, type SystemUser } from './server-process.ts'

const run = promisify(execFile)
const HOST = '127.0.0.1'
const USER = 'heddle'
const CONNECT_MS = 10_000

export interface PostgresServer {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  /** An empty one, made for this call. */
  readonly database: string
  /** For the processes that are to use `database`: `RDB_HOST` and the rest. */
  readonly env: Record<string, string>
  /** false: it was given by RDB_* in the environment and serves others too; it cannot be stopped or frozen. */
  readonly isOwn: boolean
  /** Makes another empty database. @returns its name */
  createDatabase(): Promise<string>
  /** `fast` ends its clients and shuts down in order, `immediate` is as a crash. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Starts it again with the same data, on the same port. */
  start(): Promise<void>
  /** Stops all of its processes as they are: its sockets stay open, and nothing answers. */
  freeze(): void
  thaw(): void
}

export interface PostgresOptions {
  /** A server of the test's own even where one is given by the environment: to stop, freeze or configure it. */
  own?: boolean
  /** What it has acknowledged survives a power cut. Off: faster. */
  durable?: boolean
  /** Server settings, for example `{ max_connections: '20' }`. */
  settings?: Record<string, string>
  /** It also takes encrypted connections. */
  tls?: { certificateFile: string; keyFile: string }
}

/**
 * A real PostgreSQL that ends with the test. Passwords are checked (SCRAM).
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function postgresServer(t: ServerOwner, options: PostgresOptions = {}): Promise<PostgresServer | null> {
  if (process.env.RDB_HOST !== undefined && options.own !== true) return givenServer(t)
  const program = await programFor(t, 'postgres')
  return program === null ? null : ownServer(t, program, options)
}

interface Access {
  host: string
  port: number
  user: string
  password: string
}

async function ownServer(t: ServerOwner, program: string, options: PostgresOptions): Promise<PostgresServer> {
  const user = await unprivilegedUser()
  const folder = await makeServerFolder('postgres', user)
  const access = { host: HOST, port: await freePort(), user: USER, password: '' }
  const data = join(folder, 'data')
  const settings = {
    listen_addresses: HOST,
    port: String(access.port),
    unix_socket_directories: '',
    max_connections: '200',
    // Not in /dev/shm: what a killed server leaves there stays until the next boot of the machine.
    dynamic_shared_memory_type: 'mmap',
    ...(options.durable === true ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...(options.tls === undefined ? {} : await tlsSettings(folder, options.tls, user)),
    ...options.settings,
  }
  const server = new ServerProcess({
    command: program,
    args: ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    directory: folder,
    env: { LC_ALL: 'C' },
    isReady: () => answers(access),
    ...(user === undefined ? {} : { user }),
  })
  t.after(async () => {
    await server.stop('SIGQUIT')
    await removeServerFolder(folder)
  })
  access.password = await makePostgresData({ program, superuser: USER, folder, user })
  await server.start()
  return {
    ...(await described(access)),
    isOwn: true,
    stop: (mode = 'fast') => server.stop(mode === 'fast' ? 'SIGINT' : 'SIGQUIT'),
    start: () => server.start(),
    freeze: () => server.freeze(),
    thaw: () => server.thaw(),
  }
}

/** PostgreSQL refuses a key that others may read, or that is not its own. */
async function tlsSettings(folder: string, tls: NonNullable<PostgresOptions['tls']>, user: SystemUser | undefined) {
  const own = { ssl_cert_file: join(folder, 'server.crt'), ssl_key_file: join(folder, 'server.key') }
  await copyFile(tls.certificateFile, own.ssl_cert_file)
  await copyFile(tls.keyFile, own.ssl_key_file)
  await chmod(own.ssl_key_file, 0o600)
  if (user !== undefined) for (const file of Object.values(own)) await chown(file, user.uid, user.gid)
  return { ssl: 'on', ...own }
}

/** PostgreSQL and PgBouncer refuse to run as root. */
export async function unprivilegedUser(): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all(
        ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
      )
      return { uid: uid!, gid: gid! }
    } catch {
      // No such user; perhaps the next.
    }
  }
  throw new Error(
    'PostgreSQL and PgBouncer do not run as root, and there is neither a user postgres nor nobody: run the tests as another user',
  )
}

async function givenServer(t: ServerOwner): Promise<PostgresServer> {
  const { RDB_HOST, RDB_PORT = '5432', RDB_USER = 'postgres', RDB_PASSWORD = '' } = process.env
  const access = { host: RDB_HOST!, port: Number(RDB_PORT), user: RDB_USER, password: RDB_PASSWORD }
  const made: string[] = []
  t.after(async () => {
    for (const name of made) await asAdministrator(access, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`)
  })
  const refuse = (): never => {
    throw new Error('The server was given by RDB_*: ask for one of your own, postgresServer(t, { own: true })')
  }
  return {
    ...(await described(access, made)),
    isOwn: false,
    stop: async () => refuse(),
    start: async () => refuse(),
    freeze: refuse,
    thaw: refuse,
  }
}

async function described(access: Access, made: string[] = []) {
  const createDatabase = async (): Promise<string> => {
    const name = `heddle_test_${randomBytes(6).toString('hex')}`
    await asAdministrator(access, `CREATE DATABASE "${name}"`)
    made.push(name)
    return name
  }
  const database = await createDatabase()
  const env: Record<string, string> = {
    RDB_HOST: access.host,
    RDB_PORT: String(access.port),
    RDB_USER: access.user,
    RDB_PASSWORD: access.password,
    RDB_DATABASE: database,
  }
  return { ...access, database, env, createDatabase }
}

export async function asAdministrator(access: Access, sql: string, database = 'postgres'): Promise<void> {
  const client = new pg.Client({ ...access, database, connectionTimeoutMillis: CONNECT_MS })
  client.on('error', () => {}) // A broken connection rejects the query as well.
  try {
    await client.connect()
    await client.query(sql)
  } finally {
    await client.end()
  }
}

async function answers(access: Access): Promise<boolean> {
  try {
    await asAdministrator(access, 'SELECT 1')
    return true
  } catch {
    return false
  }
}
