import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** A promise that nobody looks at rejects. */
export default class RejectUnheard extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/rejection', 'POST', this.reject, { body: z.object({ delay_ms: z.int() }) })
  }

  async reject({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    void Promise.reject(new Error('chaos: rejected by nobody'))
    await new Promise(() => {})
  }
}
