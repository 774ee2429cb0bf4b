/** The logs that the contract holds on, and what each of them does not do. */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { temporaryFolder } from '../support/folder.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { redisServer } from '../support/servers/redis.ts'
import { toolsDirWith } from '../support/tools-dir.ts'
import { until } from '../support/until.ts'
import type { Lack, LogKind } from './log.ts'

const NONE: Lack = { reason: 'it has none', failsWith: /a server/ }
const FORGETS: Lack = { reason: 'it is the memory of its process', failsWith: /handled by work/ }
export const MEMORY: LogKind = {
  name: 'memory',
  place: async () => ({
    env: { EVENT_BUS_DRIVER: 'in_process' },
    left: async () => 0,
    together: async () => {},
    server: null,
  }),
  lacks: {
    'outlives its process': FORGETS,
    'absent groups': FORGETS,
    'a server that is away': NONE,
    'several processes': { reason: 'each has its own', failsWith: /handled by work/ },
  },
}

const LEFT = 'SELECT (SELECT count(*) FROM heddle_event) + (SELECT count(*) FROM heddle_delivery) AS count'

export const SQLITE: LogKind = {
  name: 'SQLite',
  place: async (of) => {
    const path = join(temporaryFolder(of), 'service.db')
    const left = async (): Promise<number> => {
      const database = new Database(path, { readonly: true, timeout: 5000 })
      try {
        return Number((database.prepare(LEFT).get() as { count: number }).count)
      } finally {
        database.close()
      }
    }
    return { env: { EVENT_BUS_DRIVER: 'database', SQLITE_PATH: path }, left, together: async () => {}, server: null }
  },
  lacks: {
    'a server that is away': NONE,
    'several processes': { reason: 'a file is one process’s', failsWith: /The runtime ended with 78/ },
  },
}

const LEFT_ON_SERVER =
  'SELECT (SELECT count(*) FROM heddle_event) + (SELECT count(*) FROM heddle_delivery) + (SELECT count(*) FROM heddle_copy) AS count'

/** So many processes take part, and have shared the keys out. */
const together = (count: number): string => `
  SELECT (SELECT count(*) FROM heddle_process WHERE is_ready = 1) = ${count} AND (SELECT count(DISTINCT holder) FROM heddle_slot) = ${count}
    AND NOT EXISTS (SELECT 1 FROM heddle_slot WHERE heir <> 0 OR holder = 0) AS are`

export const POSTGRES: LogKind = {
  name: 'PostgreSQL',
  place: async (of, hasOwnServer) => {
    // What it has acknowledged must outlive its crash.
    const server = await postgresServer({ ...of, skip: () => {} }, { own: hasOwnServer, durable: hasOwnServer })
    if (server === null) return null
    const { host, port, user, password, database } = server
    const pool = new pg.Pool({ host, port, user, password, database, max: 1, idleTimeoutMillis: 0 })
    pool.on('error', () => {})
    of.after(() => pool.end())
    const env = {
      ...server.env,
      EVENT_BUS_DRIVER: 'database',
      RDB_DATABASE: database,
      TOOLS_DIR: await toolsDirWith(of, 'postgres'),
    }
    return {
      env,
      left: async () => Number((await pool.query(LEFT_ON_SERVER)).rows[0].count),
      together: async (count) => {
        await until(async () => (await pool.query(together(count))).rows[0].are, `${count} processes`, 60_000)
      },
      server: hasOwnServer ? { ...outageOf(server), stop: () => server.stop('immediate') } : null,
    }
  },
  lacks: {},
}

/** Entries that a group has not had, or has not acknowledged, events for later, and what waits behind dead letters. */
async function unfinished(redis: Redis): Promise<number> {
  let count = await redis.zcard('heddle:delayed')
  for (const places of await redis.keys('heddle:places:*')) count += await redis.hlen(places)
  for (const aside of await redis.keys('heddle:aside:*')) count += await redis.llen(aside)
  for (const stream of await redis.keys('heddle:event:*')) {
    for (const group of (await redis.xinfo('GROUPS', stream)) as unknown[][]) {
      const field = (name: string): unknown => group[group.indexOf(name) + 1]
      const fresh = await redis.xrange(stream, `(${field('last-delivered-id')}`, '+')
      count += Number(field('pending')) + fresh.length
    }
  }
  return count
}

export const REDIS: LogKind = {
  name: 'Redis',
  place: async (of, hasOwnServer) => {
    const args = hasOwnServer ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []
    const server = await redisServer({ ...of, skip: () => {} }, { own: true, args })
    if (server === null) return null
    const { host, port, password } = server
    const redis = new Redis({ host, port, password })
    redis.on('error', () => {})
    of.after(async () => redis.disconnect())
    return {
      env: { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams', EVENT_BUS_CLAIM_IDLE_MS: '1000' },
      left: () => unfinished(redis),
      together: async (count) => {
        await until(async () => (await redis.keys('heddle:replica:*')).length >= count, `${count} processes`, 60_000)
      },
      server: hasOwnServer ? { ...outageOf(server), stop: () => server.stop('SIGKILL') } : null,
    }
  },
}

/** What a test does to a server of its own. */
const outageOf = (server: { start(): Promise<void>; freeze(): void; thaw(): void }) => ({
  start: () => server.start(),
  freeze: () => server.freeze(),
  thaw: () => server.thaw(),
})
