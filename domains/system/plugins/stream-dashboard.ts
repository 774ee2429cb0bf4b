import { type Data, Plugin, type SseStream, type Tools } from '#heddle'
import { LiveFeed } from '../dashboard/live-feed.ts'
import { LogBacklog } from '../dashboard/log-backlog.ts'

/** All live data of the dashboard in one stream, since browsers open at most six connections to a host. */
export default class StreamDashboard extends Plugin {
  static override thread = 'primary' as const
  #http
  #backlog: LogBacklog
  #feed: LiveFeed

  constructor({ http, event_bus, logger, registry }: Tools) {
    super()
    this.#http = http
    this.#backlog = new LogBacklog(logger)
    this.#feed = new LiveFeed({ event_bus, registry, backlog: this.#backlog })
  }

  override onBoot() {
    this.#http.addStream('/system/dashboard/stream', this.open, {
      tags: ['system'],
      summary: 'What the dashboard shows',
      description: 'Events, logs and failures ten times a second, latencies and lanes every second.',
    })
  }

  async open(_data: Data, stream: SseStream) {
    await this.#feed.open(stream)
  }

  override onStop() {
    this.#feed.close()
    this.#backlog.close()
  }
}
