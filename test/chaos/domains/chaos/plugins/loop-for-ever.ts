import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** A loop without an end. */
export default plugin(({ http }) => {
  async function loop({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    for (;;);
  }

  http.addEndpoint('/chaos/faults/loop', 'POST', loop, { body: z.object({ delay_ms: z.int() }) })
})
