import { type EventMeta, Plugin, type Tools } from '#heddle'

/** Bills at the second attempt, and gives up on what nobody can bill. */
export default class BillOrder extends Plugin {
  #bus
  #log

  constructor({ event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
  }

  override onBoot() {
    this.#bus.subscribe('order.plain', this.bill)
    this.#bus.subscribe('order.shaky', this.billLater, { retries: 2, backoffMs: 20 })
    this.#bus.subscribe('order.hopeless', this.giveUp, { retries: 1, backoffMs: 20 })
    this.#bus.subscribe('order.billed', this.thank)
    this.#bus.subscribe('order.deadly', this.die)
    this.#bus.subscribe('order.loose', this.thank)
    this.#bus.subscribe('order.loose', this.ignore)
  }

  async bill({ id }: { id: string }) {
    await this.#bus.publish('order.billed', { id })
  }

  async billLater({ id }: { id: string }, { attempt }: EventMeta) {
    if (attempt < 2) throw new Error('the till is jammed')
    await this.bill({ id })
  }

  async giveUp() {
    throw new TypeError('nobody can bill this')
  }

  thank() {
    this.#log.info('Thank you')
  }

  ignore() {}

  /** Ends its thread after it has done something. */
  die(_: object, { attempt }: EventMeta) {
    this.#log.info(`Dying, attempt ${attempt}`)
    process.exit(3)
  }
}
