import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** Throws where no handler is on the stack. */
export default class ThrowInTimer extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/timer', 'POST', this.throw, { body: z.object({ delay_ms: z.int() }) })
  }

  async throw({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    setTimeout(() => {
      throw new Error('chaos: thrown by a timer')
    }, 1)
    await new Promise(() => {})
  }
}
