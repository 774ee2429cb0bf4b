import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import type { Noted } from '../events.ts'
import { pause } from '../pause.ts'

/** `POST /chaos/poison`: publishes an event that ends every lane that touches it. */
export default class TakePoison extends Plugin {
  #bus
  #http

  constructor({ event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/poison', 'POST', this.pour, { body: z.object({ number: z.int() }) })
    this.#bus.subscribe('chaos.poisoned', this.swallow)
  }

  async pour({ number }: Noted) {
    return { success: true, data: { id: await this.#bus.publish('chaos.poisoned', { number }) } }
  }

  async swallow() {
    await pause(10)
    process.exit(66)
  }
}
