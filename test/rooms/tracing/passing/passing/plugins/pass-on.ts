import { context, propagation } from '@opentelemetry/api'
import { plugin } from '#heddle'

/** Tells which `traceparent` a call to another service would get. */
export default plugin(({ event_bus, http }) => {
  async function passOn() {
    const first = traceparent()
    const { inEvent } = (await event_bus.request('passing.asked', {})) as { inEvent: string }
    return { success: true, data: { first, second: traceparent(), inEvent } }
  }

  function tell() {
    return { inEvent: traceparent() }
  }

  http.addEndpoint('/pass-on', 'GET', passOn)
  http.addWebSocket('/listen', { message: (socket) => socket.send(traceparent()) })
  event_bus.subscribe('passing.asked', tell)
})

function traceparent(): string {
  const headers: { traceparent?: string } = {}
  propagation.inject(context.active(), headers)
  return headers.traceparent ?? ''
}
