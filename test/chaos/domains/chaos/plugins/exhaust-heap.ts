import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** Keeps more objects than the lane may have. */
export default plugin(({ http }) => {
  async function exhaust({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    const kept: object[] = []
    for (let n = 0; ; n++) kept.push({ n, text: String(n), list: [n] })
  }

  http.addEndpoint('/chaos/faults/heap', 'POST', exhaust, { body: z.object({ delay_ms: z.int() }) })
})
