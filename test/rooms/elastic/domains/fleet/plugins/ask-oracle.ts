import { type HeddleError, plugin } from '#heddle'

/** Asks a subscriber that another replica may have. */
export default plugin(({ event_bus, http }) => {
  async function ask() {
    try {
      return await event_bus.request('oracle.asked', { question: 'who' })
    } catch (error) {
      return { code: (error as HeddleError).code }
    }
  }

  http.addEndpoint('/ask', 'GET', ask)
})
