import { execSync } from 'node:child_process'
import { type EventMeta, type Payload, Plugin, type Tools } from '#heddle'
import { writeSeen } from '../seen.ts'

/** Handles orders in the way that each asks for. */
export default class ShipOrders extends Plugin {
  #bus
  #db
  #replica

  constructor({ config, db, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#replica = config.get('FLEET_REPLICA', { default: '' })
  }

  override onBoot() {
    // Often enough for a database that is away for some seconds.
    this.#bus.subscribe('order.taken', this.ship, { retries: 12, backoffMs: 50 })
    this.#bus.subscribe('order.shipped', this.note)
    this.#bus.subscribe('order.keyed', this.shipInOrder, { retries: 12, backoffMs: 50 })
    this.#bus.subscribe('order.doomed', this.fail)
    this.#bus.subscribe('order.doomed', this.note)
    this.#bus.subscribe('order.deadly', this.die)
  }

  /** @param order `ms` to wait, `blockMs` to block the thread, `ships`: publishes a child */
  async ship(order: Payload, event: EventMeta): Promise<void> {
    const { ms, blockMs, ships } = order
    if (ms !== undefined || blockMs !== undefined) await writeSeen(this.#db, this.#replica, 'begins', order, event)
    if (ms !== undefined) await new Promise((resolve) => setTimeout(resolve, Number(ms)))
    if (blockMs !== undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs))
    if (ships === true) await this.#bus.publish('order.shipped', { number: order.number })
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }

  async note(order: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }

  async shipInOrder(order: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'begins', order, event)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 6))
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }

  async fail(order: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'begins', order, event)
    throw new Error('doomed')
  }

  /** Number 0 takes its thread with it, or its process, the others do no harm. */
  async die(order: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'begins', order, event)
    if (order.number === 0 && order.signal === 'SIGKILL') execSync(`kill -9 ${process.pid}`)
    else if (order.number === 0) process.exit(3)
    await new Promise((resolve) => setTimeout(resolve, Number(order.ms ?? 0)))
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }
}
