import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../port.ts'
import { programFor, type ServerOwner } from './provide.ts'
import { makeServerFolder, removeServerFolder } from './server-folder.ts'
import { ServerProcess } from './server-process.ts'

const HOST = '127.0.0.1'
const CONNECT_MS = 10_000
/** Marks a database of a given server as taken by a test. */
const CLAIM_KEY = 'heddle:test:claim'

export interface RedisServer {
  readonly host: string
  readonly port: number
  readonly password: string
  /** For the processes that are to use it: `KV_HOST` and the rest. */
  readonly env: Record<string, string>
  /** false: it was given by KV_* in the environment and serves others too; it cannot be stopped or frozen. */
  readonly isOwn: boolean
  /** Where it keeps its files; empty when it is not the test's own. */
  readonly directory: string
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again in the same folder, on the same port: with `appendonly yes` it has what it had. */
  start(): Promise<void>
  /** Its sockets stay open, and nothing answers. */
  freeze(): void
  thaw(): void
}

export interface RedisOptions {
  /** Options of redis-server, for example `['--appendonly', 'yes']`. */
  args?: readonly string[]
  /** A server of the test's own even where one is given by the environment: to stop, freeze or configure it. */
  own?: boolean
}

/**
 * A real Redis that ends with the test, with a password. Nothing is saved but by the append-only file, when `args` ask for it.
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function redisServer(t: ServerOwner, options: RedisOptions = {}): Promise<RedisServer | null> {
  const needsOwn = options.own === true || (options.args ?? []).length > 0
  if (process.env.KV_HOST !== undefined && !needsOwn) return givenServer(t)
  const program = await programFor(t, 'redis')
  return program === null ? null : ownServer(t, program, options.args ?? [])
}

async function ownServer(t: ServerOwner, program: string, args: readonly string[]): Promise<RedisServer> {
  const directory = await makeServerFolder('redis')
  const port = await freePort()
  const password = randomBytes(12).toString('hex')
  const lines = [
    `bind ${HOST}`,
    `port ${port}`,
    `dir "${directory}"`,
    `requirepass ${password}`,
    'daemonize no',
    'save ""',
    'appendonly no',
  ]
  const file = join(directory, 'redis.conf')
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  const access = { host: HOST, port, password }
  const server = new ServerProcess({
    command: program,
    args: [file, ...args],
    directory,
    isReady: () => answers(access),
  })
  t.after(async () => {
    await server.stop('SIGKILL')
    await removeServerFolder(directory)
  })
  await server.start()
  return {
    ...access,
    env: { KV_HOST: HOST, KV_PORT: String(port), KV_PASSWORD: password, KV_DB: '0' },
    isOwn: true,
    directory,
    stop: (signal = 'SIGTERM') => server.stop(signal),
    start: () => server.start(),
    freeze: () => server.freeze(),
    thaw: () => server.thaw(),
  }
}

/**
 * Tests write and delete what they like: they get a numbered database of the given server that is empty, which is emptied again at the end.
 * What lies in the others is never touched; when none is empty, the test fails. `KV_DB` narrows the choice to that one.
 */
async function givenServer(t: ServerOwner): Promise<RedisServer> {
  const { KV_HOST, KV_PORT = '6379', KV_PASSWORD = '', KV_DB } = process.env
  const access = { host: KV_HOST!, port: Number(KV_PORT), password: KV_PASSWORD }
  const choice = KV_DB === undefined ? Array.from({ length: 15 }, (_, index) => 15 - index) : [Number(KV_DB)]
  const client = connected(access)
  try {
    await client.connect()
    const db = await claimEmpty(client, choice)
    t.after(async () => {
      await client.flushdb()
      client.disconnect()
    })
    const refuse = (): never => {
      throw new Error('The server was given by KV_*: ask for one of your own, redisServer(t, { own: true })')
    }
    const env = { KV_HOST: access.host, KV_PORT: String(access.port), KV_PASSWORD, KV_DB: String(db) }
    return {
      ...access,
      env,
      isOwn: false,
      directory: '',
      stop: async () => refuse(),
      start: async () => refuse(),
      freeze: refuse,
      thaw: refuse,
    }
  } catch (error) {
    client.disconnect()
    throw error
  }
}

/** Selects a database that nobody uses. Test files run at the same time: the claim decides between two that find the same one. */
async function claimEmpty(client: Redis, choice: readonly number[]): Promise<number> {
  for (const db of choice) {
    await client.select(db)
    if ((await client.dbsize()) > 0) continue
    if ((await client.set(CLAIM_KEY, process.pid, 'NX')) === null) continue
    if ((await client.dbsize()) === 1) return db
    await client.del(CLAIM_KEY)
  }
  throw new Error(
    `The Redis that KV_* name has no empty database among ${choice.join(', ')}: empty one, name another, or unset KV_HOST so that the tests start their own`,
  )
}

interface Access {
  host: string
  port: number
  password: string
}

function connected({ host, port, password }: Access): Redis {
  const client = new Redis({
    host,
    port,
    password,
    lazyConnect: true,
    connectTimeout: CONNECT_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  })
  client.on('error', () => {}) // The command that meets it rejects.
  return client
}

async function answers(access: Access): Promise<boolean> {
  const client = connected(access)
  try {
    await client.connect()
    return (await client.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    client.disconnect()
  }
}
