import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** Throws where no handler is on the stack. */
export default plugin(({ http }) => {
  async function throwLater({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    setTimeout(() => {
      throw new Error('chaos: thrown by a timer')
    }, 1)
    await new Promise(() => {})
  }

  http.addEndpoint('/chaos/faults/timer', 'POST', throwLater, { body: z.object({ delay_ms: z.int() }) })
})
