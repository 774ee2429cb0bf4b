import assert from 'node:assert/strict'
import pg from 'pg'
import { serversEnv } from '../shop/made-shop.ts'
import { type PostgresServer, postgresServer } from '../support/servers/postgres.ts'
import { type RedisServer, redisServer } from '../support/servers/redis.ts'

/** A PostgreSQL and a Redis for all trials. */
export class Servers {
  readonly #postgres: PostgresServer
  readonly #redis: RedisServer
  #uses = 0

  private constructor(postgres: PostgresServer, redis: RedisServer) {
    this.#postgres = postgres
    this.#redis = redis
  }

  /** @param endings gets what ends them */
  static async start(endings: (() => Promise<void> | void)[]): Promise<Servers> {
    const owner = { after: (end: () => Promise<void>) => void endings.push(end), skip: console.log }
    const [postgres, redis] = [await postgresServer(owner), await redisServer(owner)]
    if (postgres === null || redis === null) throw new Error('There is no PostgreSQL, or no Redis')
    return new Servers(postgres, redis)
  }

  /** An application's variables, for databases that are empty. */
  async fresh(): Promise<Record<string, string>> {
    const database = await this.#postgres.createDatabase()
    const KV_DB = String(this.#uses++ % 16)
    return serversEnv({ ...this.#postgres, database }, { env: { ...this.#redis.env, KV_DB } })
  }

  /** Proof that the shop's tests ran there. @param env of `fresh` */
  async assertOrders(env: Record<string, string>): Promise<void> {
    const client = new pg.Client({ connectionString: env.DATABASE_URL! })
    await client.connect()
    try {
      const { rows } = await client.query('SELECT CAST(count(*) AS integer) AS n FROM orders')
      assert.ok(rows[0].n > 0, 'There is no order in PostgreSQL')
    } finally {
      await client.end()
    }
  }
}
