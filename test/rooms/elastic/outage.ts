import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet, type Replica } from '../../support/replicas.ts'
import { type PostgresServer, postgresServer } from '../../support/servers/postgres.ts'
import type { ServerOwner } from '../../support/servers/provide.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { type Account, isWhole, Orders, settle, shown } from './accounts.ts'

/** Before it happens, and afterwards: of both replicas. */
const ANSWERS = 50

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
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(claimIdleMs), SHUTDOWN_TIMEOUT_MS: '5000' },
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
    const orders = new Orders(t, [...this.#replicas], { everyMs: 40, payload: { ms: 100 } })
    await orders.until(ANSWERS)
    await happen()
    const before = orders.acknowledged
    const startedMs = performance.now()
    await orders.until(before + ANSWERS)
    const backMs = performance.now() - startedMs
    await orders.stop()
    const account = await settle(this.fleet, orders, 180_000)
    const settledMs = performance.now() - startedMs
    const line = `${shown(account)}; ${ANSWERS} more answers after ${Math.round(backMs)} ms, all settled after ${Math.round(settledMs)} ms`
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

  /** Events that are in hand all the time while the store stands still. @returns how often each was begun */
  async freezeRedisWhileHandling(ms: number): Promise<number[]> {
    const count = 20
    await this.fleet.sql('TRUNCATE fleet_orders, fleet_seen')
    const body = { count, payload: { ms: ms + 1500 } }
    await Promise.all(this.#replicas.map((replica) => replica.post('/events/order.taken', body)))
    const begun = () => this.fleet.seen('order.taken', 'begins')
    await until(async () => (await begun()).length >= 2 * count, 'all are begun')
    await this.freezeRedis(ms)
    await until(async () => (await this.fleet.seen('order.taken')).length >= 2 * count, 'all have ended', 60_000)
    await until(async () => (await this.fleet.unfinished('order.taken')) === 0, 'all are acknowledged', 60_000)
    const times = new Map<string, number>()
    for (const { event_id } of await begun()) times.set(event_id, (times.get(event_id) ?? 0) + 1)
    return [...times.values()]
  }

  /** Tells the second replica to end while the store does not answer. @returns its exit code */
  async stopWithoutRedis(): Promise<number | null> {
    const [a, b] = this.#replicas
    await this.fleet.sql('TRUNCATE fleet_orders, fleet_seen')
    const { body } = await b.post('/events/order.taken', { count: 20, payload: { ms: 500 } })
    this.#redis.freeze()
    const code = await b.stop()
    this.#redis.thaw()
    const ids: string[] = body.data.ids
    await until(
      async () => {
        const seen = new Set((await this.fleet.seen('order.taken')).map(({ event_id }) => event_id))
        return ids.every((id) => seen.has(id)) && (await this.fleet.unfinished('order.taken')) === 0
      },
      `all are handled, by ${a.id} if need be`,
      60_000,
    )
    return code
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
