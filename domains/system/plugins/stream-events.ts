import { type Data, Plugin, type SseStream, type Tools } from '#heddle'

/** Every event record as it comes, except for events whose names begin with `_`. */
export default class StreamEvents extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus

  constructor({ http, event_bus }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
  }

  override onBoot() {
    this.#http.addStream('/system/events/stream', this.open, {
      tags: ['system'],
      summary: 'Each event as it happens',
      description: 'From now on, whatever thread publishes it, except for those whose names begin with `_`.',
    })
  }

  open(_data: Data, stream: SseStream) {
    const stop = this.#bus.addListener((record) => {
      if (!record.event.startsWith('_')) stream.send(record)
    })
    stream.signal.addEventListener('abort', stop)
  }
}
