import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** Never answers, and hurts nobody else by it. */
export default plugin(({ http }) => {
  async function hang({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    await new Promise(() => {})
  }

  http.addEndpoint('/chaos/faults/hang', 'POST', hang, { body: z.object({ delay_ms: z.int() }) })
})
