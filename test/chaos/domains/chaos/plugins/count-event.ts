import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { type Counted, course } from '../events.ts'

/** `POST /chaos/count`: publishes a number, and answers once the bus has taken it. */
export default class CountEvent extends Plugin {
  #bus
  #http

  constructor({ event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/count', 'POST', this.count, { body: z.object({ number: z.int(), course }) })
  }

  async count({ number, course }: Counted) {
    return { success: true, data: { id: await this.#bus.publish('chaos.counted', { number, course }) } }
  }
}
