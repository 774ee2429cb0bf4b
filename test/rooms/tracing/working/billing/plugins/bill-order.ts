import { type EventMeta, plugin } from '#heddle'

/** Bills at the second attempt, and gives up on what nobody can bill. */
export default plugin(({ event_bus, logger }) => {
  async function bill({ id }: { id: string }) {
    await event_bus.publish('order.billed', { id })
  }

  async function billLater({ id }: { id: string }, { attempt }: EventMeta) {
    if (attempt < 2) throw new Error('the till is jammed')
    await bill({ id })
  }

  async function giveUp() {
    throw new TypeError('nobody can bill this')
  }

  function thank() {
    logger.info('Thank you')
  }

  function ignore() {}

  /** Ends its thread after it has done something. */
  function die(_: object, { attempt }: EventMeta) {
    logger.info(`Dying, attempt ${attempt}`)
    process.exit(3)
  }

  event_bus.subscribe('order.plain', bill)
  event_bus.subscribe('order.shaky', billLater, { retries: 2, backoffMs: 20 })
  event_bus.subscribe('order.hopeless', giveUp, { retries: 1, backoffMs: 20 })
  event_bus.subscribe('order.billed', thank)
  event_bus.subscribe('order.deadly', die)
  event_bus.subscribe('order.loose', thank)
  event_bus.subscribe('order.loose', ignore)
})
