import { plugin } from '#heddle'
import { isSampleKept } from '../configuration.ts'
import { LiveFeed } from '../dashboard/live-feed.ts'
import { LogBacklog } from '../dashboard/log-backlog.ts'

const options = {
  tags: ['system'],
  summary: 'What the dashboard shows',
  description: 'Events, logs and failures ten times a second, latencies and lanes every second.',
}

/** All live data of the dashboard in one stream, since browsers open at most six connections to a host. */
export default plugin(
  ({ http, event_bus, logger, registry, scheduler, config }) => {
    const backlog = new LogBacklog(logger)
    const feed = new LiveFeed({ event_bus, registry, scheduler, backlog, isSample: isSampleKept(config) })
    http.addStream('/system/dashboard/stream', (_data, stream) => feed.open(stream), options)
    return {
      onStop: () => {
        feed.close()
        backlog.close()
      },
    }
  },
  { thread: 'primary' },
)
