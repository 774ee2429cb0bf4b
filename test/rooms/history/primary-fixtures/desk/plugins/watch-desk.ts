import { plugin } from '#heddle'

export default plugin(
  ({ http, state, event_bus, scheduler }) => {
    http.addEndpoint('/desk', 'GET', look)
    http.addEndpoint('/system/desk', 'GET', look)
    http.addEndpoint('/system/desk/broken', 'GET', fall)
    event_bus.subscribe('desk.looked', note)
    scheduler.every('dust', 200, dust)

    async function look() {
      await state.get('desk')
      await event_bus.publish('desk.looked', {})
      return { success: true }
    }

    function fall(): never {
      throw new Error('The desk has fallen')
    }

    async function note() {
      await state.set('desk', 'looked at')
    }

    async function dust() {
      await state.increment('dust')
    }
  },
  { thread: 'primary' },
)
