import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** Ends "the process", which is its lane. */
export default plugin(({ http }) => {
  async function exit({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    process.exit(41)
  }

  http.addEndpoint('/chaos/faults/exit', 'POST', exit, { body: z.object({ delay_ms: z.int() }) })
})
