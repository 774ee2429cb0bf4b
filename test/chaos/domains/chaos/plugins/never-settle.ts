import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** Never answers, and hurts nobody else by it. */
export default class NeverSettle extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/hang', 'POST', this.hang, { body: z.object({ delay_ms: z.int() }) })
  }

  async hang({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    await new Promise(() => {})
  }
}
