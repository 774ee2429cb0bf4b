import { type Data, type EventBus, type EventMeta, type Logger, type Payload, Plugin, type Tools } from '#heddle'

/** Subscribers that log what they are given, and hold it while a test wants them to. */
export default class Work extends Plugin {
  readonly #bus: EventBus
  readonly #log: Logger
  readonly #left = new Map<string, () => void>()
  /** What CORNERS_HOLD names is held until it is released: by name, those who wait. */
  readonly #held = new Map<string, (() => void)[]>()

  constructor({ config, http, event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
    for (const name of config.get('CORNERS_HOLD', { default: '' }).split(',')) this.#held.set(name, [])
    http.addEndpoint('/publish/:event', 'POST', async ({ event, payload, key }: Data) => ({
      id: await this.#bus.publish(event, payload, key === undefined ? {} : { key }),
    }))
    http.addEndpoint('/subscribe/:event', 'POST', ({ event, retries = 0, backoffMs = 10 }: Data) => {
      this.#left.set(event, this.#bus.subscribe(event, this.late, { retries, backoffMs, timeoutMs: 120_000 }))
      return {}
    })
    http.addEndpoint('/unsubscribe/:event', 'POST', ({ event }: Data) => {
      this.#left.get(event)?.()
      return {}
    })
    http.addEndpoint('/release/:name', 'POST', ({ name }: Data) => {
      for (const go of this.#held.get(name) ?? []) go()
      this.#held.delete(name)
      return {}
    })
  }

  override onBoot() {
    const patient = { timeoutMs: 120_000 }
    this.#bus.subscribe('quick', this.quick)
    this.#bus.subscribe('one', this.same, patient)
    this.#bus.subscribe('other', this.same, patient)
    this.#bus.subscribe('failing', this.failing, { retries: 3, backoffMs: 600_000 })
    this.#bus.subscribe('beacon', this.beacon, { retries: 3, backoffMs: 2000 })
  }

  quick = (data: Payload, event: EventMeta) => this.#see('quick', data, event)

  same = (data: Payload, event: EventMeta) => this.#handle('same', data, event)

  failing(data: Payload, event: EventMeta) {
    this.#see('failing', data, event)
    throw new Error('It is not to succeed')
  }

  beacon(data: Payload, event: EventMeta) {
    this.#see('beacon', data, event)
    if (event.attempt === 1) throw new Error('It is to succeed the second time')
  }

  async late(data: Payload, event: EventMeta) {
    if (data.fails === true && event.attempt === 1) {
      this.#see('late fails', data, event)
      throw new Error('It is to succeed the second time')
    }
    await this.#handle('late', data, event)
  }

  async #handle(name: string, data: Payload, event: EventMeta): Promise<void> {
    this.#see(name, data, event)
    const waiting = data.isHeld === true ? this.#held.get(name) : undefined
    if (waiting !== undefined) await new Promise<void>((resolve) => waiting.push(resolve))
    this.#see(`${name} ends`, data, event)
  }

  #see(name: string, { n }: Payload, { id, attempt }: EventMeta): void {
    this.#log.info(name, { n, id, attempt })
  }
}
