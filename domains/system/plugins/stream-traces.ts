import { type EventRecord, plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'The last 500 events, then each new one',
  description: 'As server-sent events, each with what caused it.',
}

/** The records of `/system/traces/flat`, then every new event record as it comes. */
export default plugin(
  ({ http, event_bus }) => {
    http.addStream(
      '/system/traces/stream',
      async (_data, stream) => {
        // Listens before it reads the history, so that no record is missed. A record that is in both is sent once.
        const early: EventRecord[] = []
        let take = (record: EventRecord): unknown => early.push(record)
        const stop = event_bus.addListener((record) => take(record))
        stream.signal.addEventListener('abort', stop)
        const records = await event_bus.getTraceHistory()
        stream.send({ snapshot: true, records })
        const sent = new Set(records.map(({ id }) => id))
        for (const record of early) if (!sent.has(record.id)) stream.send(record)
        take = (record) => stream.send(record)
      },
      options,
    )
  },
  { thread: 'primary' },
)
