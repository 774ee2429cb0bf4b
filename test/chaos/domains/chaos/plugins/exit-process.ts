import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** Ends "the process", which is its lane. */
export default class ExitProcess extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/exit', 'POST', this.exit, { body: z.object({ delay_ms: z.int() }) })
  }

  async exit({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    process.exit(41)
  }
}
