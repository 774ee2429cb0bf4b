import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** Keeps more objects than the lane may have. */
export default class ExhaustHeap extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/heap', 'POST', this.exhaust, { body: z.object({ delay_ms: z.int() }) })
  }

  async exhaust({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    const kept: object[] = []
    for (let n = 0; ; n++) kept.push({ n, text: String(n), list: [n] })
  }
}
