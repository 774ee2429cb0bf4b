// The requests of the listener, as the history records them.
import type { ObservedRequest, RequestWatcher } from '../contracts/tracing.ts'
import { exactMs } from '../core/schedule/steady-time.ts'
import { isOwnPage, Room } from './keep.ts'
import type { ThreadHistory } from './recorder.ts'

/** A request that is open for so long is told of before it ends, so that it is known if the process dies. Milliseconds. */
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

  ended(request: ObservedRequest, status: number): void {
    const endMs = exactMs()
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

/** Number of the requests without a route, among those of the routes. */
const NO_ROUTE = 0

const isOfRuntime = ({ route }: ObservedRequest): boolean =>
  route !== null && route.zone !== 'application' && isOwnPage(route.path)
