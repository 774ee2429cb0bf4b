import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

const BUFFER_BYTES = 4 << 20
const BUFFERS = 96
const KEPT_MS = 1000

/** Fills 384 MiB that are not on the JavaScript heap, some at a time, and keeps them for a while. */
export default plugin(({ http }) => {
  async function burst({ delay_ms }: { delay_ms: number }) {
    await pause(delay_ms)
    const kept: Buffer[] = []
    while (kept.length < BUFFERS) {
      for (let n = 0; n < 8; n++) kept.push(Buffer.alloc(BUFFER_BYTES, kept.length))
      await pause(1)
    }
    await pause(KEPT_MS)
    return { success: true, data: { bytes: kept.reduce((sum, { length }) => sum + length, 0) } }
  }

  http.addEndpoint('/chaos/faults/buffers', 'POST', burst, { body: z.object({ delay_ms: z.int() }) })
})
