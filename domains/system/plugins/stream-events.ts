import { plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'Each event as it happens',
  description: 'From now on, whatever thread publishes it, except for those whose names begin with `_`.',
}

/** Every event record as it comes, except for events whose names begin with `_`. */
export default plugin(
  ({ http, event_bus }) => {
    http.addStream(
      '/system/events/stream',
      (_data, stream) => {
        const stop = event_bus.addListener((record) => {
          if (!record.event.startsWith('_')) stream.send(record)
        })
        stream.signal.addEventListener('abort', stop)
      },
      options,
    )
  },
  { thread: 'primary' },
)
