import { type Data, Plugin, type SseStream, type Tools } from '#heddle'

/** Every log record of the process as it is written: its message, without its fields. */
export default class StreamLogs extends Plugin {
  static override thread = 'primary' as const
  #http
  #logger

  constructor({ http, logger }: Tools) {
    super()
    this.#http = http
    this.#logger = logger
  }

  override onBoot() {
    this.#http.addStream('/system/logs/stream', this.open, {
      tags: ['system'],
      summary: 'Each log record as it comes',
      description: 'Of all threads of the process, from now on: the message, without its fields.',
    })
  }

  /** Must not log: the record would come back to this sink. */
  open(_data: Data, stream: SseStream) {
    const stop = this.#logger.addSink((level, message, timestamp, identity) =>
      stream.send({ level, message, timestamp, identity }),
    )
    stream.signal.addEventListener('abort', stop)
  }
}
