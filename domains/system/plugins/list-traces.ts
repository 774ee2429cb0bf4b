import { type EventRecord, plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'The last 500 events, oldest first',
  description: 'Each with its emitter and the event that caused it.',
}

/** The last 500 event records, oldest first. */
export default plugin(
  ({ http, event_bus }) => {
    http.get('/system/traces/flat', options, async (): Promise<EventRecord[]> => event_bus.getTraceHistory())
  },
  { thread: 'primary' },
)
