// What the primary counts and measures for Prometheus, beside tool calls and lanes.
import type { ProcessCounter } from '../../contracts/registry.ts'
import { heddleVersion } from '../../core/config/release.ts'
import type { Settings } from '../../core/config/schema.ts'
import { SYSTEM_CLOCK } from '../../core/schedule/clock.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import { QueueFigures } from '../event-store/queue-figures.ts'
import type { Hub } from '../events/hub.ts'
import type { Listener } from '../http/listener.ts'
import { places } from '../http/places.ts'
import type { Routing } from '../http/routes.ts'
import type { LogOutput } from '../logging/log-output.ts'
import type { Health } from './health.ts'
import { RequestCounts } from './request-counts.ts'

/** The parts of the primary that are read at each scrape. */
interface Measured {
  readonly kernel: { readonly settings: Settings }
  readonly events: { readonly hub: Hub; readonly threadStore: ThreadStore }
  readonly listener: Listener
  readonly routing: Routing
  readonly health: Health
  readonly processLog: { readonly output: LogOutput }
  readonly supervisor: { readonly coreShares: { readonly starvedMs: ReadonlyMap<string, number> } }
  readonly dispatcher: { readonly held: number }
  readonly localWorker: { readonly held: number }
  /** Null without a guardian. */
  readonly processDeaths: { readonly hasDied: boolean } | null
}

export class ProcessMetrics {
  readonly #parts: Measured
  readonly #requests = new RequestCounts()
  readonly #queues: QueueFigures
  readonly #version = heddleVersion()
  /** Unix time of the start, seconds. */
  readonly #startedSec = (Date.now() - process.uptime() * 1000) / 1000

  constructor(parts: Measured) {
    this.#parts = parts
    const { hub, threadStore } = parts.events
    this.#queues = new QueueFigures(() => hub.workloads(), threadStore, SYSTEM_CLOCK)
    parts.listener.watchers.push(this.#requests)
  }

  async read(): Promise<ProcessCounter[]> {
    const { events, routing, processDeaths } = this.#parts
    return [
      ...this.#process(),
      ...this.#requests.metrics(routing.table.list()),
      ...events.hub.counts.metrics(events.hub.workloads()),
      ...(await this.#queueMetrics()),
      ...this.#limits(),
      figure(
        'heddle_started_after_death',
        '1 if the guardian has started this process because the one before it died.',
        +(processDeaths?.hasDied ?? false),
      ),
    ]
  }

  #process(): ProcessCounter[] {
    const { health, kernel, supervisor } = this.#parts
    const { heddleRelease = '', replicaId } = kernel.settings
    const { user, system } = process.cpuUsage()
    const { node } = process.versions
    const build = { release: heddleRelease, version: this.#version, node, replica: replicaId }
    const reloads = Object.entries(health.reloads).map(([result, value]) => ({ labels: { result }, value }))
    const starved = [...supervisor.coreShares.starvedMs].map(([name, ms]) => ({
      labels: { thread: name.replace(/^the /, '') },
      value: ms / 1000,
    }))
    return [
      figure('heddle_build_info', 'Always 1: the labels say what runs.', [{ labels: build, value: 1 }]),
      figure('process_start_time_seconds', 'When the process began, Unix time.', this.#startedSec),
      figure('process_cpu_seconds_total', 'CPU time of all threads.', (user + system) / 1e6),
      figure('process_resident_memory_bytes', 'Memory of the process.', process.memoryUsage.rss()),
      figure('heddle_reloads_total', 'Reloads of the lanes. failed: the old code goes on.', reloads),
      figure(
        'heddle_starved_seconds_total',
        'Time for which a thread waited for a core more than half of the time.',
        starved,
      ),
    ]
  }

  async #queueMetrics(): Promise<ProcessCounter[]> {
    const nowMs = Date.now()
    const queues = await this.#queues.read()
    const samplesOf = (value: (of: (typeof queues)[number]) => number): ProcessCounter['samples'] =>
      queues.map((queue) => ({ labels: { event: queue.event, subscriber: queue.subscriber }, value: value(queue) }))
    return [
      figure(
        'heddle_queue_deliveries',
        'Deliveries of a subscriber that this process has in memory, waiting or running.',
        samplesOf(({ depth }) => depth),
      ),
      figure(
        'heddle_queue_oldest_age_seconds',
        'Age of the oldest delivery of a subscriber that is due and not finished, of all processes; 0: there is none.',
        samplesOf(({ oldestMs }) => (oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs) / 1000)),
      ),
      figure(
        'heddle_stored_deliveries',
        'Deliveries in the event store, of all processes, delayed ones included.',
        this.#queues.stored ?? [],
      ),
      figure(
        'heddle_stored_deliveries_max',
        'EVENT_BUS_MAX_STORED: the event store takes no more.',
        this.#queues.stored === null ? [] : this.#parts.kernel.settings.eventBusMaxStored,
      ),
    ]
  }

  #limits(): ProcessCounter[] {
    const { listener, processLog, events, dispatcher, localWorker } = this.#parts
    const { open, max, pauses } = listener.connectionLimit
    const { output } = processLog
    const records = Object.entries(output.droppedTotal).map(([level, value]) => ({ labels: { level }, value }))
    const held = {
      requests: dispatcher.held + localWorker.held,
      uploads: places.uploads.held,
      streams: places.streams.held,
    }
    const faults = listener.framingFaults.totals().map(([reason, value]) => ({ labels: { reason }, value }))
    return [
      figure(
        'heddle_log_records_dropped_total',
        'Log records that were dropped because nobody read standard output.',
        records,
      ),
      figure('heddle_log_buffer_bytes', 'Log lines that wait for the reader of standard output.', output.waitingBytes),
      figure(
        'heddle_dead_letters_dropped_total',
        'Dead letters that were dropped for newer ones.',
        events.hub.deadLetters.dropped.count,
      ),
      figure(
        'heddle_deliveries_pending',
        'Deliveries of events that are accepted and not finished.',
        events.hub.pending,
      ),
      figure(
        'heddle_framing_faults_total',
        'Connections that were closed because the end of a request was not certain.',
        faults,
      ),
      figure('heddle_http_connections', 'Connections that are open, WebSockets included.', open),
      figure(
        'heddle_http_connections_max',
        'Connections that may be open by the limit of descriptors.',
        Number.isFinite(max) ? max : [],
      ),
      figure(
        'heddle_http_places_held',
        'Places that clients hold, abandoned handlers included.',
        Object.entries(held).map(([kind, value]) => ({ labels: { kind }, value })),
      ),
      figure(
        'heddle_http_places_refused_total',
        'Requests and messages that were refused because a bound left no place for them.',
        [...places.refused].map(([bound, value]) => ({ labels: { bound }, value })),
      ),
      figure(
        'heddle_http_accept_pauses_total',
        'Times that no new connections were taken because that many were open.',
        pauses,
      ),
    ]
  }
}

/** What only grows has a name that ends in `_total`. */
function figure(name: string, help: string, value: number | ProcessCounter['samples']): ProcessCounter {
  const samples = typeof value === 'number' ? [{ labels: {}, value }] : value
  return { name, kind: name.endsWith('_total') ? 'counter' : 'gauge', help, samples }
}
