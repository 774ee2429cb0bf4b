import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '../../support/clients.ts'
import { isAcknowledged, Ledger } from '../../support/ledger.ts'
import type { Fleet, Replica, Seen } from '../../support/replicas.ts'
import { until } from '../../support/until.ts'

export interface LoadOptions {
  /** Clients that each send one request after another. */
  clients?: number
  /** Time between an answer and the next request of one client, milliseconds. */
  everyMs?: number
  /** What the events hold beside their number. */
  payload?: object
  options?: object
}

/** Clients that order and write down what they were told. A replica that refuses or is gone costs them an answer, and the next one is asked. */
export class Orders {
  readonly ledger = new Ledger(performance.now())
  readonly #replicas: Replica[]
  readonly #options: LoadOptions
  readonly #clients: Promise<void>[]
  #isStopped = false
  #lastNumber = 0

  /** @param replicas may be changed while it runs */
  constructor(t: { after(end: () => Promise<void>): void }, replicas: Replica[], options: LoadOptions = {}) {
    t.after(() => this.stop())
    this.#replicas = replicas
    this.#options = options
    this.#clients = Array.from({ length: options.clients ?? 6 }, (_, n) => this.#run(n))
  }

  async #run(client: number): Promise<void> {
    const { everyMs = 20, payload = {}, options = {} } = this.#options
    while (!this.#isStopped) {
      // Each has its own replica, so that one that stands still does not hold up the others.
      const replica = this.#replicas[client % this.#replicas.length]
      if (replica === undefined) {
        await sleep(everyMs)
        continue
      }
      const number = ++this.#lastNumber
      const requestId = `order-${number}`
      const sentMs = performance.now()
      const { outcome, id } = await post(replica, '/orders', { number, payload, options }, requestId)
      this.ledger.record(
        { subject: 'count', requestId, key: String(number), course: '', outcome, id },
        sentMs,
        performance.now(),
      )
      await sleep(everyMs)
    }
  }

  get acknowledged(): number {
    return this.ledger.writes.filter(isAcknowledged).length
  }

  async until(acknowledged: number): Promise<void> {
    await until(() => this.acknowledged >= acknowledged, `${acknowledged} acknowledged orders`, 60_000)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }
}

export interface Account {
  acknowledged: number
  handled: number
  /** Acknowledged, and without a row. */
  lostRows: string[]
  /** Acknowledged, and neither handled nor a dead letter. */
  lostEvents: string[]
  deadLetters: number
  /** Event id → how often it was handled, of those with more than one. */
  repeated: Map<string, number>
  /** Replica → events it has handled. */
  shares: Map<string, number>
  /** Handled with another parent or request than it was published with. */
  corrupt: Seen[]
  outcomes: Record<string, number>
}

/** Waits until nobody has anything to do any more, and compares what was promised with what is there. */
export async function settle(fleet: Fleet, { ledger }: Orders, timeoutMs = 60_000): Promise<Account> {
  const quiet = async (): Promise<boolean> =>
    (await fleet.unfinished('order.taken')) === 0 && (await fleet.redis.zcard('heddle:delayed')) === 0
  await until(quiet, 'all orders are finished', timeoutMs)
  const acknowledged = ledger.writes.filter(isAcknowledged)
  const seen = await fleet.seen('order.taken')
  const times = new Map<string, number>()
  const shares = new Map<string, number>()
  for (const { event_id, replica } of seen) {
    times.set(event_id, (times.get(event_id) ?? 0) + 1)
    shares.set(replica, (shares.get(replica) ?? 0) + 1)
  }
  const letters = (await fleet.redis.xrange('heddle:dead', '-', '+')).map(([, fields]) => JSON.stringify(fields))
  const isDead = (id: string): boolean => letters.some((letter) => letter.includes(id))
  const rows = new Set(
    (await fleet.sql<{ number: number }>('SELECT number FROM fleet_orders')).map((row) => row.number),
  )
  const requestOf = new Map(acknowledged.map(({ id, requestId }) => [id, requestId]))
  return {
    acknowledged: acknowledged.length,
    handled: times.size,
    lostRows: acknowledged.filter(({ key }) => !rows.has(Number(key))).map(({ id }) => id),
    lostEvents: acknowledged.filter(({ id }) => !times.has(id) && !isDead(id)).map(({ id }) => id),
    deadLetters: letters.length,
    repeated: new Map([...times].filter(([, count]) => count > 1)),
    shares,
    corrupt: seen.filter(
      ({ event_id, request_id, parent_id, number }) =>
        parent_id !== null ||
        request_id !== `order-${number}` ||
        (requestOf.get(event_id) ?? request_id) !== request_id,
    ),
    outcomes: ledger.countByOutcome(),
  }
}

/** Nothing that was acknowledged is missing, and nothing has been mixed up. */
export function isWhole({ acknowledged, lostRows, lostEvents, corrupt }: Account): boolean {
  return acknowledged > 0 && lostRows.length + lostEvents.length + corrupt.length === 0
}

export function assertWhole(account: Account): void {
  assert.ok(isWhole(account), `${shown(account)} ${JSON.stringify(account)}`)
}

/** One line for people. */
export function shown(account: Account): string {
  const { acknowledged, handled, repeated, deadLetters, lostRows, lostEvents, corrupt, shares, outcomes } = account
  return `${acknowledged} acknowledged, ${handled} handled (${repeated.size} more than once), ${deadLetters} dead letters, lost: ${lostRows.length} rows, ${lostEvents.length} events, mixed up: ${corrupt.length}; shares ${JSON.stringify(Object.fromEntries(shares))}; answers ${JSON.stringify(outcomes)}`
}
