// The primary's side of the history, and the requests of the listener as it records them.
import { fileURLToPath } from 'node:url'
import type { BlackBox } from '../contracts/registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from '../contracts/requests.ts'
import type {
  CodeTracing,
  DeliveryTracing,
  ObservedRequest,
  RecordedRun,
  RequestWatcher,
  RunsRecorder,
  ToolTracing,
} from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import { exactMs } from '../core/schedule/clock.ts'
import { Reminder } from '../core/schedule/repeating-task.ts'
import { SideThread } from '../recording/side-thread.ts'
import { isOwnPage, Room } from './keep.ts'
import type { HistoryQuery } from './questions.ts'
import { DeliveryHistory, ThreadHistory } from './recorder.ts'
import type { StoreInit } from './store.ts'

/** Bytes for entries of one thread that were not fetched yet. */
export const HISTORY_RING_BYTES = 1 << 20
/** Milliseconds between two log lines about one trouble. */
const REMINDER_MS = 60_000
/** Longest time for the last entries when the process ends. Milliseconds. */
const FLUSH_MS = 1000

/** What makes spans for OpenTelemetry in the primary. */
type InnerTracing = CodeTracing & { readonly tools: ToolTracing; readonly deliveries: DeliveryTracing }

/** The primary's side of the history: its own recorders, a ring for each thread, and the thread that writes the file. */
export class ProcessHistory {
  readonly own: ThreadHistory
  readonly requests: RequestHistory
  readonly deliveries: DeliveryHistory
  readonly jobs: JobHistory
  /** Of the threads that record. */
  readonly rings: SideThread<string>

  /** @param inner null while tracing is off @param guardian process id of the one that has started this process */
  constructor(
    settings: Settings,
    inner: InnerTracing | null,
    warn: (message: string) => void,
    guardian: number | null = null,
  ) {
    const init: StoreInit = { settings, guardian }
    const reminder = new Reminder(REMINDER_MS)
    const trouble = (why: string): void => {
      if (reminder.isDue()) warn(`Requests are not kept in ${settings.historyPath}: ${why}`)
    }
    this.rings = new SideThread({
      file: fileURLToPath(new URL('./store-thread.ts', import.meta.url)),
      name: 'history',
      heapMb: 128,
      ringBytes: HISTORY_RING_BYTES,
      stillbornMax: 3,
      init,
      onNews: trouble,
      onDeath: (why, isLast) => (isLast ? warn(`Requests are not kept: ${why}`) : trouble(why)),
    })
    this.own = new ThreadHistory('primary', settings, this.rings.open('primary'), inner)
    this.requests = new RequestHistory(this.own)
    this.jobs = new JobHistory(this.own)
    this.deliveries = new DeliveryHistory(this.own, inner?.deliveries ?? null)
  }

  /** Starts the thread that writes the file. What was recorded before waits in the rings. */
  start(): void {
    this.rings.start()
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
    return this.#ask({ kind: 'list', filter }) as Promise<RequestSummary[]>
  }

  /** @param id of a request, of a run of a job, or of an event @returns null where nothing is kept of it */
  one(id: string): Promise<RequestDetail | null> {
    return this.#ask({ kind: 'one', id }) as Promise<RequestDetail | null>
  }

  figures(span: WorkSpan): Promise<WorkReport> {
    return this.#ask({ kind: 'figures', span }) as Promise<WorkReport>
  }

  #ask(query: HistoryQuery): Promise<unknown> {
    return this.rings.ask(query)
  }

  async stop(withinMs: number): Promise<void> {
    await this.rings.stop(Math.min(FLUSH_MS, withinMs))
  }
}

/** A request or a run that is open for so long is told of before it ends, so that it is known if the process dies. Milliseconds. */
const LONG_MS = 100
/** Characters of a path. */
const PATH_MAX = 500
/** In a sample: open requests of one second that are told of. */
const OPEN_PER_SECOND = 100

/** Records the requests of the process when they end. What is not kept costs a clock, a mark and a hash; nothing is allocated. */
export class RequestHistory implements RequestWatcher {
  readonly #own: ThreadHistory
  readonly #room = new Room(OPEN_PER_SECOND)

  constructor(own: ThreadHistory) {
    this.#own = own
  }

  isOpen(request: ObservedRequest, nowMs: number): void {
    if (request.isTold || nowMs - request.startMs < LONG_MS || isOfRuntime(request)) return
    const { writer, keep } = this.#own
    if (!keep.isAll && !this.#room.take(nowMs)) return
    request.isTold = true
    writer.write(() => ({ type: 'begun', ...this.#place(request) }))
  }

  ended(request: ObservedRequest, status: number, endMs: number): void {
    const ms = endMs - request.startMs
    if (this.#isKept(request, status, ms, endMs)) this.#write(request, status, ms)
  }

  #isKept(request: ObservedRequest, status: number, ms: number, endMs: number): boolean {
    if (status >= 500 || request.isTold) return true
    if (isOfRuntime(request)) return false
    const { requestId, route } = request
    return this.#own.keep.keeps(requestId, route === null ? NO_ROUTE : route.number + 1, ms, endMs)
  }

  #write(request: ObservedRequest, status: number, ms: number): void {
    const lane = request.servedBy
    this.#own.writer.write(() => ({ type: 'request', ...this.#place(request), ms, status, lane }))
  }

  #place({ requestId, key: id, method, path, route, startMs }: ObservedRequest) {
    // From the clock of this thread to that of all threads.
    const atMs = startMs + this.#own.nowMs() - exactMs()
    const clientId = requestId === id ? null : requestId
    return {
      id,
      clientId,
      atMs,
      method,
      path: path.slice(0, PATH_MAX),
      route: route?.path ?? '',
      plugin: route?.plugin ?? '',
    }
  }
}

/** Records runs that are open, and the ends of those that a thread could not record. */
export class JobHistory implements RunsRecorder {
  readonly #own: ThreadHistory

  constructor(own: ThreadHistory) {
    this.#own = own
  }

  begin({ askedBy: user, ...run }: RecordedRun): { end(error: string | null, isCutOff: boolean): void } {
    const { writer, nowMs } = this.#own
    const atMs = nowMs()
    let isTold = false
    const write = (ms: number | null, error: string | null): void => {
      isTold = true
      writer.write(() => ({ type: 'run', ...run, user, atMs, ms, error }))
    }
    const timer = setTimeout(write, LONG_MS, null, null).unref()
    return {
      end: (error, isCutOff) => {
        clearTimeout(timer)
        if (isTold || isCutOff) write(nowMs() - atMs, error)
      },
    }
  }
}

/** Number of the requests without a route, among those of the routes. */
const NO_ROUTE = 0

const isOfRuntime = ({ route }: ObservedRequest): boolean =>
  route !== null && route.zone !== 'application' && isOwnPage(route.path)
