import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** A loop without an end. */
export default class LoopForEver extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/loop', 'POST', this.loop, { body: z.object({ delay_ms: z.int() }) })
  }

  async loop({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    for (;;);
  }
}
