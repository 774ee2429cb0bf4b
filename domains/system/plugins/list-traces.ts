import { type EventRecord, Plugin, type Tools } from '#heddle'

/** The last 500 event records, oldest first. */
export default class ListTraces extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus

  constructor({ http, event_bus }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
  }

  override onBoot() {
    this.#http.addEndpoint('/system/traces/flat', 'GET', this.list, {
      tags: ['system'],
      summary: 'The last 500 events, oldest first',
      description: 'Each with its emitter and the event that caused it.',
    })
  }

  async list(): Promise<EventRecord[]> {
    return this.#bus.getTraceHistory()
  }
}
