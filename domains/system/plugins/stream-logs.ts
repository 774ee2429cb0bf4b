import { plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'Each log record as it comes',
  description: 'Of all threads of the process, from now on: the message, without its fields.',
}

/** Every log record of the process as it is written: its message, without its fields. */
export default plugin(
  ({ http, logger }) => {
    http.addStream(
      '/system/logs/stream',
      (_data, stream) => {
        // Must not log: the record would come back to this sink.
        const stop = logger.addSink((level, message, timestamp, identity) =>
          stream.send({ level, message, timestamp, identity }),
        )
        stream.signal.addEventListener('abort', stop)
      },
      options,
    )
  },
  { thread: 'primary' },
)
