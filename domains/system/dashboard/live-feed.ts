import { randomUUID } from 'node:crypto'
import { HeddleError, type SseStream } from '#heddle'
import { excerptOf, firedIn, singleRoutes, summaryOf } from './excerpts.ts'
import type { DashboardFrame } from './frames.ts'
import { type Sources, Watch } from './watch.ts'

/**
 * The data of all open dashboards, gathered once for all of them. It listens and computes only while one is open:
 * otherwise it holds no sink and no timer.
 */
export class LiveFeed {
  readonly #sources: Sources
  readonly #boot = randomUUID()
  readonly #clients = new Set<SseStream>()
  #watch: Watch | null = null

  constructor(sources: Sources) {
    this.#sources = sources
  }

  async open(stream: SseStream): Promise<void> {
    if (stream.signal.aborted) return
    this.#clients.add(stream)
    stream.signal.addEventListener('abort', () => this.#leave(stream))
    this.#watch ??= new Watch(this.#sources)
    const watch = this.#watch
    const { event_bus, registry } = this.#sources
    // Read before the first await: later events are in the frames that follow, and may be in the history too.
    const heardBefore = watch.heard
    const [records, topology, lanes, readiness, routes, historyOff] = await Promise.all([
      event_bus.getTraceHistory(),
      event_bus.getTopology(),
      registry.getLanes(),
      registry.getReadiness(),
      registry.getRoutes(),
      registry.getRequests({ limit: 1 }).then(() => null, whyOff),
    ])
    const eventsTotal = firedIn(topology)
    watch.total ??= eventsTotal + (watch.heard - heardBefore)
    stream.send({
      type: 'hello',
      boot: this.#boot,
      started_at: new Date(performance.timeOrigin).toISOString(),
      events_total: eventsTotal,
      records: records.map(excerptOf),
      topology,
      status: registry.getSystemDump(),
      readiness,
      lanes: lanes.map(summaryOf),
      routes: singleRoutes(routes),
      history_off: historyOff,
      logs: this.#sources.backlog.entries(),
    } satisfies DashboardFrame)
    if (!stream.signal.aborted) watch.clients.add(stream)
  }

  #leave(stream: SseStream): void {
    this.#clients.delete(stream)
    this.#watch?.clients.delete(stream)
    if (this.#clients.size > 0) return
    this.#watch?.end()
    this.#watch = null
  }

  close(): void {
    this.#watch?.end()
    this.#watch = null
  }
}

/** Whatever else is wrong with the history may pass. */
const whyOff = (error: unknown): string | null =>
  error instanceof HeddleError && error.code === 'HISTORY_OFF' ? error.message : null
