import assert from 'node:assert/strict'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { type Heddle, type Owner, spawnHeddle, startHeddle } from './heddle.ts'
import type { PostgresServer } from './servers/postgres.ts'
import type { RedisServer } from './servers/redis.ts'
import { SHIPPED } from './shipped-domains.ts'
import { toolsDirWith } from './tools-dir.ts'
import { unfinishedEntries } from './unfinished.ts'
import { CHEAP_AUTH, NO_LIMITS } from './users-service.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const DOMAINS = [SHIPPED, pathOf('../rooms/elastic/domains')]

export interface FleetOptions {
  postgres: PostgresServer
  redis: RedisServer
  /** Of all replicas. */
  env?: Record<string, string>
}

export interface ReplicaOptions {
  /** Domain folders beside the shipped ones and those of the fleet, absolute. */
  domains?: string[]
  env?: Record<string, string>
}

/** One process of several that share a database and a key-value store. */
export interface Replica extends Heddle {
  readonly id: string
}

/** What a subscriber of the fleet has written down. */
export interface Seen {
  seq: number
  event_id: string
  event: string
  replica: string
  parent_id: string | null
  request_id: string | null
}

/** Real processes of the elastic stage, on one PostgreSQL and one Redis. They end with their test. */
export class Fleet {
  readonly #owner: Owner
  readonly #env: Record<string, string>
  readonly #pool: pg.Pool
  /** A connection of the test's own. */
  readonly redis: Redis

  private constructor(owner: Owner, env: Record<string, string>) {
    this.#owner = owner
    this.#env = env
    this.#pool = new pg.Pool({
      host: env.RDB_HOST!,
      port: Number(env.RDB_PORT),
      user: env.RDB_USER!,
      password: env.RDB_PASSWORD!,
      database: env.RDB_DATABASE!,
      max: 2,
    })
    this.#pool.on('error', () => {})
    this.redis = new Redis({
      host: env.KV_HOST!,
      port: Number(env.KV_PORT),
      password: env.KV_PASSWORD!,
      db: Number(env.KV_DB),
    })
    this.redis.on('error', () => {})
  }

  /** An empty database, migrated as an operator does it before any replica starts, and an empty store. */
  static async start(t: Owner, { postgres, redis, env = {} }: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(t, {
      ...postgres.env,
      ...redis.env,
      RDB_DATABASE: await postgres.createDatabase(),
      TOOLS_DIR: await toolsDirWith(t, 'postgres', 'redis-state', CHEAP_AUTH),
      AUTH_SECRET_KEY: 'the secret of the tests of several replicas',
      DB_AUTO_MIGRATE: 'false',
      EVENT_BUS_DRIVER: 'keyvalue_streams',
      SCHEDULER_ENABLED: 'false',
      ...NO_LIMITS,
      ...env,
    })
    t.after(async () => {
      fleet.redis.disconnect()
      await fleet.#pool.end()
    })
    await fleet.redis.flushdb()
    const { child, errors } = await spawnHeddle(t, {
      domains: DOMAINS,
      args: ['--boot-tool', 'db'],
      env: { ...fleet.#env, DB_AUTO_MIGRATE: 'true' },
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 0, errors.join(''))
    return fleet
  }

  /** Starts a replica and resolves when it serves. */
  async replica(id: string, { domains = [], env = {} }: ReplicaOptions = {}): Promise<Replica> {
    const heddle = await startHeddle(this.#owner, {
      domains: [...DOMAINS, ...domains],
      lanes: 1,
      env: { ...this.#env, REPLICA_ID: id, FLEET_REPLICA: id, ...env },
    })
    return { ...heddle, id }
  }

  async sql<Row extends pg.QueryResultRow>(text: string, params: unknown[] = []): Promise<Row[]> {
    return (await this.#pool.query<Row>(text, params)).rows
  }

  /** What has been handled, in the order in which it was. */
  async seen(event: string): Promise<Seen[]> {
    return this.sql<Seen & pg.QueryResultRow>('SELECT * FROM fleet_seen WHERE event = $1 ORDER BY seq', [event])
  }

  /** Entries of an event that its groups have been given and have not finished, or have not been given yet. */
  unfinished(event: string): Promise<number> {
    return unfinishedEntries(this.redis, event)
  }
}
