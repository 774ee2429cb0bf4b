/** The logs that the contract holds on, and what each of them does not do. */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { temporaryFolder } from '../support/folder.ts'
import type { Owner } from '../support/heddle.ts'
import { type Query, rowsOfFile, rowsOfServer } from '../support/rows.ts'
import { pgBouncerServer } from '../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresServer } from '../support/servers/postgres.ts'
import { redisServer } from '../support/servers/redis.ts'
import { toolsDirWith } from '../support/tools-dir.ts'
import { unfinishedEntries } from '../support/unfinished.ts'
import { until } from '../support/until.ts'
import type { Lack, LogKind } from './log.ts'
import type { Place } from './log-bench.ts'

const NONE: Lack = { reason: 'it has none', failsWith: /a server/ }
const FORGETS: Lack = { reason: 'it is the memory of its process', failsWith: /handled by work/ }
export const MEMORY: LogKind = {
  name: 'memory',
  place: async () => ({
    env: { EVENT_BUS_DRIVER: 'in_process' },
    left: async () => 0,
    noted: async () => 0,
    together: async () => {},
    server: null,
  }),
  lacks: {
    'outlives its process': FORGETS,
    'absent groups': FORGETS,
    'a server that is away': NONE,
    'one slow subscriber does not stop the others': {
      reason: 'it refuses more than a share of the queue',
      failsWith: /too far behind/,
    },
    'several processes': { reason: 'each has its own', failsWith: /handled by work/ },
  },
}

const countIn = async (rows: Query, sql: string) => Number((await rows<{ count: number }>(sql))[0]!.count)
const leftIn = (rows: Query, sql: string) => () => countIn(rows, sql)
const notedIn = (rows: Query) => (handler: string) => countIn(rows, `${NOTED} AND g.grp LIKE '%.${handler}'`)
const NOTED = `SELECT count(*) AS count FROM heddle_delivery AS d JOIN heddle_group AS g ON g.id = d.grp WHERE (d.attempt > 1 OR d.begun = 1)`

export const SQLITE: LogKind = {
  name: 'SQLite',
  place: async (of) => {
    const path = join(temporaryFolder(of), 'service.db')
    const rows = rowsOfFile(path)
    return {
      env: { EVENT_BUS_DRIVER: 'database', SQLITE_PATH: path },
      left: leftIn(rows, LEFT),
      noted: notedIn(rows),
      together: async () => {},
      server: null,
    }
  },
  lacks: {
    'a server that is away': NONE,
    'several processes': { reason: 'a file is one process’s', failsWith: /The runtime ended with 78/ },
  },
}

const LEFT = 'SELECT count(*) AS count FROM heddle_delivery'

/** So many processes take part, and have shared out the slots of each group. */
const together = (count: number): string => `
  SELECT (SELECT count(*) FROM heddle_member WHERE groups > 0) = ${count} AND NOT EXISTS (
    SELECT 1 FROM heddle_group AS g WHERE g.member = 0 AND (
      EXISTS (SELECT 1 FROM heddle_slot WHERE grp = g.id AND member IS NULL)
      OR (SELECT count(DISTINCT member) FROM heddle_slot WHERE grp = g.id) <> (SELECT count(*) FROM heddle_member_group WHERE grp = g.id))) AS are`

export const POSTGRES: LogKind = {
  name: 'PostgreSQL',
  place: async (of, hasOwnServer) => {
    // What it has acknowledged must outlive its crash.
    const server = await postgresServer({ ...of, skip: () => {} }, { own: hasOwnServer, durable: hasOwnServer })
    return server === null ? null : placeOn(of, server, hasOwnServer)
  },
  lacks: {},
}

async function placeOn(of: Owner, server: PostgresServer, hasOwnServer: boolean): Promise<Place> {
  const rows = rowsOfServer(of, server)
  return {
    env: {
      ...server.env,
      EVENT_BUS_DRIVER: 'database',
      RDB_DATABASE: server.database,
      TOOLS_DIR: await toolsDirWith(of, 'postgres'),
    },
    left: leftIn(rows, LEFT),
    noted: notedIn(rows),
    together: async (count) => {
      await until(async () => (await rows<{ are: boolean }>(together(count)))[0]!.are, `${count} processes`, 60_000)
    },
    server: hasOwnServer ? { ...outageOf(server), stop: () => server.stop('immediate') } : null,
  }
}

/** Few sessions for all processes and threads, so that they meet. */
const FEW_SESSIONS = { default_pool_size: '4', max_client_conn: '500' }

export const POOLED: LogKind = {
  name: 'PostgreSQL behind a pooler that gives each transaction a session',
  place: async (of, hasOwnServer) => {
    const server = await postgresServer({ ...of, skip: () => {} }, { own: hasOwnServer, durable: hasOwnServer })
    if (server === null) return null
    const place = await placeOn(of, server, hasOwnServer)
    const pooler = await pgBouncerServer({ ...of, skip: () => {} }, server, 'transaction', FEW_SESSIONS)
    if (pooler === null) return null
    return { ...place, env: { ...place.env, ...pooler.env, RDB_DATABASE: server.database, RDB_POOLER: 'transaction' } }
  },
  lacks: {},
}

/** @param databaseOf makes the database, which keeps the events with a key or a delay */
function redisWith(name: string, databaseOf: LogKind['place']): LogKind {
  const place: LogKind['place'] = async (of, hasOwnServer) => {
    const database = await databaseOf(of, false)
    const args = hasOwnServer ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []
    const server = await redisServer({ ...of, skip: () => {} }, { own: true, args })
    if (server === null || database === null) return null
    const { host, port, password } = server
    const redis = new Redis({ host, port, password })
    redis.on('error', () => {})
    of.after(async () => redis.disconnect())
    const driver = { EVENT_BUS_DRIVER: 'keyvalue_streams', EVENT_BUS_CLAIM_IDLE_MS: '1000' }
    return {
      env: { ...database.env, ...server.env, ...driver },
      left: async () => (await database.left()) + (await unfinishedEntries(redis)),
      noted: async (handler) => {
        let count = await database.noted(handler)
        for (const attempts of await redis.keys('heddle:attempts:*'))
          count += (await redis.hkeys(attempts)).filter((field) => field.includes(handler)).length
        return count
      },
      together: async (count) => {
        await until(async () => (await redis.keys('heddle:replica:*')).length >= count, `${count} processes`, 60_000)
        await database.together(count)
      },
      server: hasOwnServer ? { ...outageOf(server), stop: () => server.stop('SIGKILL') } : null,
    }
  }
  return { name, place }
}

/** Two processes need the server: a file is one process’s. */
export const REDIS = redisWith('Redis with PostgreSQL', POSTGRES.place)
export const REDIS_ALONE = redisWith('Redis with SQLite', SQLITE.place)

/** What a test does to a server of its own. */
const outageOf = (server: { start(): Promise<void>; freeze(): void; thaw(): void }) => ({
  start: () => server.start(),
  freeze: () => server.freeze(),
  thaw: () => server.thaw(),
})
