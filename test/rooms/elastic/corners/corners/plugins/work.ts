import { type Data, type EventBus, type EventMeta, type Logger, type Payload, Plugin, type Tools } from '#heddle'

/** Subscribers that log what they are given. */
export default class Work extends Plugin {
  readonly #bus: EventBus
  readonly #log: Logger
  readonly #left = new Map<string, () => void>()

  constructor({ http, event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
    http.addEndpoint('/publish/:event', 'POST', async ({ event, payload }: Data) => ({
      id: await this.#bus.publish(event, payload),
    }))
    http.addEndpoint('/subscribe/:event', 'POST', ({ event, retries = 0, backoffMs = 10 }: Data) => {
      this.#left.set(event, this.#bus.subscribe(event, this.late, { retries, backoffMs, timeoutMs: 120_000 }))
      return {}
    })
    http.addEndpoint('/unsubscribe/:event', 'POST', ({ event }: Data) => {
      this.#left.get(event)?.()
      return {}
    })
  }

  override onBoot() {
    this.#bus.subscribe('quick', this.quick)
    this.#bus.subscribe('failing', this.failing, { retries: 3, backoffMs: 600_000 })
    this.#bus.subscribe('beacon', this.beacon, { retries: 3, backoffMs: 2000 })
  }

  quick = (data: Payload, event: EventMeta) => this.#see('quick', data, event)

  failing(data: Payload, event: EventMeta) {
    this.#see('failing', data, event)
    throw new Error('It is not to succeed')
  }

  beacon(data: Payload, event: EventMeta) {
    this.#see('beacon', data, event)
    if (event.attempt === 1) throw new Error('It is to succeed the second time')
  }

  late(data: Payload, event: EventMeta) {
    if (data.fails === true && event.attempt === 1) {
      this.#see('late fails', data, event)
      throw new Error('It is to succeed the second time')
    }
    this.#see('late ends', data, event)
  }

  #see(name: string, { n }: Payload, { id, attempt }: EventMeta): void {
    this.#log.info(name, { n, id, attempt })
  }
}
