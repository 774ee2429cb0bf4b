import { z } from 'zod'
import { plugin } from '#heddle'
import type { Noted } from '../events.ts'
import { pause } from '../pause.ts'

/** `POST /chaos/poison`: publishes an event that ends every lane that touches it. */
export default plugin(({ event_bus, http }) => {
  async function pour({ number }: Noted) {
    return { success: true, data: { id: await event_bus.publish('chaos.poisoned', { number }) } }
  }

  async function swallow() {
    await pause(10)
    process.exit(66)
  }

  http.addEndpoint('/chaos/poison', 'POST', pour, { body: z.object({ number: z.int() }) })
  event_bus.subscribe('chaos.poisoned', swallow)
})
