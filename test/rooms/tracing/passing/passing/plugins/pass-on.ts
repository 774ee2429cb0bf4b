import { context, propagation } from '@opentelemetry/api'
import { Plugin, type Tools } from '#heddle'

/** Tells which `traceparent` a call to another service would get. */
export default class PassOn extends Plugin {
  #bus
  #http

  constructor({ event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/pass-on', 'GET', this.passOn)
    this.#http.addWebSocket('/listen', { message: (socket) => socket.send(traceparent()) })
    this.#bus.subscribe('passing.asked', this.tell)
  }

  async passOn() {
    const first = traceparent()
    const { inEvent } = (await this.#bus.request('passing.asked', {})) as { inEvent: string }
    return { success: true, data: { first, second: traceparent(), inEvent } }
  }

  tell() {
    return { inEvent: traceparent() }
  }
}

function traceparent(): string {
  const headers: { traceparent?: string } = {}
  propagation.inject(context.active(), headers)
  return headers.traceparent ?? ''
}
