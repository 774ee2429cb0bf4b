import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** A promise that nobody looks at rejects. */
export default plugin(({ http }) => {
  async function reject({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    void Promise.reject(new Error('chaos: rejected by nobody'))
    await new Promise(() => {})
  }

  http.addEndpoint('/chaos/faults/rejection', 'POST', reject, { body: z.object({ delay_ms: z.int() }) })
})
