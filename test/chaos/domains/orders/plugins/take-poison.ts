import { type Data, type HttpContext, plugin } from '#heddle'

/** Publishes events that end each lane that has them. */
export default plugin(({ event_bus, http }) => {
  http.addEndpoint('/poisons', 'POST', pour)
  event_bus.subscribe('poison.poured', swallow)

  async function pour({ number }: Data, context: HttpContext) {
    context.setStatus(201)
    return { success: true, data: { id: await event_bus.publish('poison.poured', { number }) } }
  }

  async function swallow() {
    await new Promise((resolve) => setTimeout(resolve, 10))
    process.exit(66)
  }
})
