import { z } from 'zod'
import { plugin } from '#heddle'
import { type Counted, course } from '../events.ts'

/** `POST /chaos/count`: publishes a number, and answers once the bus has taken it. */
export default plugin(({ event_bus, http }) => {
  async function count({ number, course }: Counted) {
    return { success: true, data: { id: await event_bus.publish('chaos.counted', { number, course }) } }
  }

  http.addEndpoint('/chaos/count', 'POST', count, { body: z.object({ number: z.int(), course }) })
})
