import { type Data, type EventRecord, Plugin, type SseStream, type Tools } from '#heddle'

/** The records of `/system/traces/flat`, then every new event record as it comes. */
export default class StreamTraces extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus

  constructor({ http, event_bus }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
  }

  override onBoot() {
    this.#http.addStream('/system/traces/stream', this.open, {
      tags: ['system'],
      summary: 'The last 500 events, then each new one',
      description: 'As server-sent events, each with what caused it.',
    })
  }

  async open(_data: Data, stream: SseStream) {
    // Listens before it reads the history, so that no record is missed. A record that is in both is sent once.
    const early: EventRecord[] = []
    let take = (record: EventRecord): unknown => early.push(record)
    const stop = this.#bus.addListener((record) => take(record))
    stream.signal.addEventListener('abort', stop)

    const records = await this.#bus.getTraceHistory()
    stream.send({ snapshot: true, records })
    const sent = new Set(records.map(({ id }) => id))
    for (const record of early) if (!sent.has(record.id)) stream.send(record)
    take = (record) => stream.send(record)
  }
}
