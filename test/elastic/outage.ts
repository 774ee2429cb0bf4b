import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/heddle.ts'
import { Fleet, type Replica } from '../support/replicas.ts'
import { type PostgresServer, postgresServer } from '../support/servers/postgres.ts'
import type { ServerOwner } from '../support/servers/provide.ts'
import { type RedisServer, redisServer } from '../support/servers/redis.ts'
import { type Account, isWhole, Orders, settle, shown } from './accounts.ts'

/** Two replicas on servers that can be taken away from them. What a server has acknowledged it keeps. */
export class Outage {
  readonly fleet: Fleet
  readonly #postgres: PostgresServer
  readonly #redis: RedisServer
  readonly #replicas: readonly [Replica, Replica]

  private constructor(fleet: Fleet, postgres: PostgresServer, redis: RedisServer, replicas: [Replica, Replica]) {
    this.fleet = fleet
    this.#postgres = postgres
    this.#redis = redis
    this.#replicas = replicas
  }

  /** @returns null where there are no servers */
  static async start(t: ServerOwner, claimIdleMs: number): Promise<Outage | null> {
    const postgres = await postgresServer(t, { own: true, durable: true })
    if (postgres === null) return null
    const redis = await redisServer(t, { own: true, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    if (redis === null) return null
    const fleet = await Fleet.start(t, {
      postgres,
      redis,
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(claimIdleMs), HEALTH_CHECK_INTERVAL: '1' },
    })
    const replicas = await Promise.all([fleet.replica('a'), fleet.replica('b')])
    return new Outage(fleet, postgres, redis, replicas)
  }

  /** What is left of a load during which something happened. */
  async under(
    t: { after(end: () => Promise<void>): void },
    happen: () => Promise<void>,
  ): Promise<{ account: Account; line: string; isWhole: boolean }> {
    await this.fleet.sql('TRUNCATE fleet_orders, fleet_seen')
    const orders = new Orders(t, [...this.#replicas], { everyMs: 10, payload: { ms: 100 } })
    await orders.until(100)
    await happen()
    const before = orders.acknowledged
    const startedMs = performance.now()
    await orders.until(before + 100)
    const backMs = performance.now() - startedMs
    await orders.stop()
    const account = await settle(this.fleet, orders, 180_000)
    const settledMs = performance.now() - startedMs
    const line = `${shown(account)}; 100 more answers after ${Math.round(backMs)} ms, all settled after ${Math.round(settledMs)} ms`
    return { account, line, isWhole: isWhole(account) }
  }

  async restartRedis(): Promise<void> {
    // As a crash: what it has acknowledged is in its file.
    await this.#redis.stop('SIGKILL')
    await sleep(300)
    await this.#redis.start()
  }

  async freezeRedis(ms: number): Promise<void> {
    this.#redis.freeze()
    await sleep(ms)
    this.#redis.thaw()
  }

  async restartPostgres(): Promise<void> {
    await this.#postgres.stop('immediate')
    await sleep(300)
    await this.#postgres.start()
  }

  /** One of the two; the load goes on at the other. */
  async freezeReplica(ms: number): Promise<void> {
    const [, b] = this.#replicas
    b.freeze()
    await sleep(ms)
    b.thaw()
    await until(async () => (await b.fetch('/system/health/ready')).status === 200, 'it is ready again', 60_000)
  }
}
