import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '../support/clients.ts'
import { Fleet, type Replica } from '../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../support/servers/both-of-suite.ts'
import { until } from '../support/until.ts'

const NAME = 'a replica that is killed'
const CLAIM_IDLE_MS = 1000
const CLIENTS = 6
const PAUSE_MS = 20

interface Order {
  number: number
  id: string
  requestId: string
}

/** Clients that order one after another, each at a replica of its own, and write down what they were promised. */
class Orders {
  readonly promised: Order[] = []
  readonly #replicas: readonly Replica[]
  readonly #clients: Promise<void>[]
  #isOver = false
  #last = 0

  /** @param replicas may be changed while it runs */
  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas
    this.#clients = Array.from({ length: CLIENTS }, (_, n) => this.#order(n))
  }

  async #order(client: number): Promise<void> {
    for (; !this.#isOver; await sleep(PAUSE_MS)) {
      const number = ++this.#last
      const requestId = `order-${number}`
      const replica = this.#replicas[client % this.#replicas.length]!
      const { outcome, id } = await post(replica, '/orders', { number, payload: { ms: 400 } }, requestId)
      if (outcome === 201 && id !== null) this.promised.push({ number, id, requestId })
    }
  }

  more(count: number): Promise<unknown> {
    const wanted = this.promised.length + count
    return until(() => this.promised.length >= wanted, `${count} more orders`, 60_000)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
  }
}

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let a: Replica
  let b: Replica

  test('boot', async () => {
    fleet = await Fleet.start(owner, {
      postgres,
      redis,
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(CLAIM_IDLE_MS) },
    })
    ;[a, b] = await Promise.all([fleet.replica('a', { lanes: 2 }), fleet.replica('b')])
  })

  test('kill -9 under load loses nothing: the survivor takes over what the dead one had in hand', async (t) => {
    const replicas = [a, b]
    const orders = new Orders(replicas)
    t.after(() => orders.stop())
    const inHandOfB = async (): Promise<number> => {
      const [stream, group] = ['heddle:event:order.taken', 'fleet.ShipOrders.ship']
      return (await fleet.redis.xpending(stream, group, '-', '+', 1000, 'b:hub')).length
    }
    await orders.more(100)
    // Asked before: the survivor takes it over as soon as it sees that the process is gone.
    await until(async () => (await inHandOfB()) >= 5, 'it has something in hand')
    await b.kill()
    replicas.splice(1)
    await orders.more(100)
    await orders.stop()
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'all orders are finished', 60_000)

    const handled = new Map((await fleet.seen('order.taken')).map((row) => [row.event_id, row]))
    const stored = await fleet.sql<{ number: number }>('SELECT number FROM fleet_orders')
    const rows = new Set(stored.map(({ number }) => number))
    const { promised } = orders
    assert.deepEqual(
      promised.filter(({ number }) => !rows.has(number)),
      [],
      'each has its row',
    )
    assert.deepEqual(
      promised.filter(({ id, requestId }) => handled.get(id)?.request_id !== requestId),
      [],
      'each is handled, as of its request',
    )
    const mixedUp = [...handled.values()].filter(
      ({ number, request_id, parent_id }) => parent_id !== null || request_id !== `order-${number}`,
    )
    assert.deepEqual(mixedUp, [])
    assert.equal(await fleet.redis.xlen('heddle:dead'), 0)
  })
})
