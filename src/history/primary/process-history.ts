import type { BlackBox } from '../../contracts/registry.ts'
import type {
  HistoryInit,
  RequestDetail,
  RequestFilter,
  RequestSummary,
  WorkReport,
  WorkSpan,
} from '../../contracts/requests.ts'
import type { ClockAnchor, CodeTracing, DeliveryTracing, ToolTracing } from '../../contracts/tracing.ts'
import type { Settings } from '../../core/config/schema.ts'
import { anchorHere } from '../../core/schedule/process-clock.ts'
import { letGo } from '../../transport/memory/garbage.ts'
import { DeliveryHistory } from '../recording/delivery-history.ts'
import { createHistoryRing } from '../recording/history-writer.ts'
import { ThreadHistory } from '../recording/thread-history.ts'
import { HistorySupervisor } from './history-supervisor.ts'
import { RequestHistory } from './request-history.ts'

/** What makes spans for OpenTelemetry in the primary. */
export interface InnerTracing {
  own: CodeTracing & { tools: ToolTracing; deliveries: DeliveryTracing }
}

/** The primary's side of the history: its own recorders, a ring for each thread, and the thread that writes the file. */
export class ProcessHistory {
  readonly own: ThreadHistory
  readonly requests: RequestHistory
  readonly deliveries: DeliveryHistory
  readonly #clock: ClockAnchor = anchorHere()
  readonly #share: number
  readonly #payloads: HistoryInit['payloads']
  readonly #store: HistorySupervisor
  readonly #ids = new Map<SharedArrayBuffer, number>()
  #lastId = 0

  /** @param inner null while tracing is off @param isGuarded a guardian has started this process */
  constructor(settings: Settings, inner: InnerTracing | null, warn: (message: string) => void, isGuarded = false) {
    const { historyPath: path, historyMaxMb, historyHours, historySample, replicaId: replica } = settings
    this.#share = historySample
    this.#payloads = settings.nodeEnv === 'production' ? null : { domainsDirs: settings.domainsDir }
    const shutdownMs = isGuarded ? settings.shutdownDelayMs + settings.shutdownTimeoutMs : null
    this.#store = new HistorySupervisor(
      { path, maxBytes: historyMaxMb * 2 ** 20, keepMs: historyHours * 3_600_000, replica, shutdownMs },
      warn,
    )
    this.own = new ThreadHistory(this.#init('primary'), inner?.own ?? null)
    this.requests = new RequestHistory(this.own)
    this.deliveries = new DeliveryHistory(this.own, inner?.own.deliveries ?? null)
  }

  /** Starts the thread that writes the file. What was recorded before waits in the rings. */
  start(): void {
    this.#store.start()
  }

  /** Makes what a new lane needs. */
  laneInit(index: number): HistoryInit {
    return this.#init(index)
  }

  #init(thread: 'primary' | number): HistoryInit {
    const ring = createHistoryRing()
    const id = ++this.#lastId
    this.#ids.set(ring, id)
    this.#store.add({ id, ring, thread })
    return { thread, ring, clock: this.#clock, share: this.#share, payloads: this.#payloads }
  }

  /** A lane's thread has ended. What it has left in its ring is still stored. */
  laneGone({ ring }: HistoryInit): void {
    const id = this.#ids.get(ring)
    if (id === undefined) return
    this.#ids.delete(ring)
    letGo(ring)
    this.#store.remove(id)
  }

  /** A lane has died. @param keys of requests, by their ids */
  died(
    { at, lane, reason, message, guilty, stack, in_flight: inFlight }: BlackBox,
    keys: ReadonlyMap<string, string> = new Map(),
  ): void {
    this.own.writer.write(() => ({
      type: 'death',
      atMs: Date.parse(at),
      lane,
      reason,
      message,
      plugin: guilty?.plugin ?? null,
      handler: guilty?.handler ?? null,
      line: guilty?.line ?? null,
      stack: stack.slice(0, 30),
      ids: inFlight.flatMap(({ id }) => (id === null ? [] : [keys.get(id) ?? id])),
    }))
  }

  list(filter: RequestFilter): Promise<RequestSummary[]> {
    return this.#store.ask({ kind: 'list', filter }) as Promise<RequestSummary[]>
  }

  /** @param id of a request, of a run of a job, or of an event @returns null where nothing is kept of it */
  one(id: string): Promise<RequestDetail | null> {
    return this.#store.ask({ kind: 'one', id }) as Promise<RequestDetail | null>
  }

  figures(span: WorkSpan): Promise<WorkReport> {
    return this.#store.ask({ kind: 'figures', span }) as Promise<WorkReport>
  }

  async stop(): Promise<void> {
    await this.#store.stop()
  }
}
