// Counts requests by route, for Prometheus.
import type { ProcessCounter } from '../../contracts/registry.ts'
import type { ObservedRequest, ObservedRoute, RequestWatcher } from '../../contracts/tracing.ts'

/** Routes with figures of their own. Requests of further ones count for the route `other`. */
export const COUNTED_ROUTES_MAX = 1000
/** Upper bounds of the histogram, seconds: from a read in memory to a handler close to its timeout. */
export const DURATIONS_SEC = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
/** By the first digit of the status. 0: the client was gone before there was an answer. */
const CLASSES = ['gone', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** These are there before the first request: what a counter begins with is no increase to Prometheus. */
const FROM_ZERO: readonly string[] = ['2xx', '4xx', '5xx']

/** The requests of one route since the start of the process. */
class RouteFigures {
  readonly labels: Readonly<Record<string, string>>
  readonly byClass = new Float64Array(CLASSES.length)
  /** Not cumulative. The last one counts those above all bounds. */
  readonly buckets = new Float64Array(DURATIONS_SEC.length + 1)
  totalSec = 0
  timed = 0

  constructor(labels: Readonly<Record<string, string>>) {
    this.labels = labels
  }

  time(sec: number): void {
    let n = 0
    while (n < DURATIONS_SEC.length && sec > DURATIONS_SEC[n]!) n++
    this.buckets[n]!++
    this.totalSec += sec
    this.timed++
  }
}

/** Counts every request once, at its end. The runtime's own pages, which poll, are left out. */
export class RequestCounts implements RequestWatcher {
  /** By number of the route; null: not counted. */
  readonly #byNumber: (RouteFigures | null | undefined)[] = []
  /** A route that is removed and comes back has another number, and the same labels. */
  readonly #all = new Map<string, RouteFigures>()

  ended({ route, startMs }: ObservedRequest, status: number, endMs: number): void {
    const figures = this.#of(route)
    if (figures === null) return
    figures.byClass[(status / 100) | 0]!++
    // How long a client listens to a stream or a socket is no latency.
    if (route === null || route.kind === 'endpoint') figures.time((endMs - startMs) / 1000)
  }

  #of(route: ObservedRoute | null): RouteFigures | null {
    const number = route === null ? 0 : route.number + 1
    let figures = this.#byNumber[number]
    if (figures === undefined) {
      figures = this.#figuresOf(route)
      this.#byNumber[number] = figures
    }
    return figures
  }

  #figuresOf(route: ObservedRoute | null): RouteFigures | null {
    if (route === null) return this.#labelled('', 'unknown', '')
    if (route.zone !== 'application') return null
    const { method, path, plugin } = route
    const hasRoom = this.#all.size < COUNTED_ROUTES_MAX || this.#all.has(keyOf(method, path, plugin))
    return hasRoom ? this.#labelled(method, path, plugin) : this.#labelled('', 'other', '')
  }

  #labelled(method: string, route: string, plugin: string): RouteFigures {
    const key = keyOf(method, route, plugin)
    let figures = this.#all.get(key)
    if (figures === undefined) {
      figures = new RouteFigures({ method, route, plugin })
      this.#all.set(key, figures)
    }
    return figures
  }

  /** @param routes are there from 0 on */
  metrics(routes: Iterable<ObservedRoute> = []): ProcessCounter[] {
    for (const route of routes) this.#of(route)
    const requests: ProcessCounter['samples'] = []
    const durations: ProcessCounter['samples'] = []
    for (const { labels, byClass, buckets, totalSec, timed } of this.#all.values()) {
      CLASSES.forEach((status, n) => {
        const value = byClass[n]!
        if (value > 0 || FROM_ZERO.includes(status)) requests.push({ labels: { ...labels, status }, value })
      })
      if (timed > 0) durations.push(...histogramOf(labels, DURATIONS_SEC, buckets, totalSec))
    }
    return [
      {
        name: 'heddle_http_requests_total',
        kind: 'counter',
        help: 'Requests that have ended, by route and class of the status. gone: the client left before there was an answer.',
        samples: requests,
      },
      {
        name: 'heddle_http_request_duration_seconds',
        kind: 'histogram',
        help: 'From the head of a request to its answer, streams and WebSockets left out.',
        samples: durations,
      },
    ]
  }
}

const keyOf = (method: string, path: string, plugin: string): string => `${method} ${path} ${plugin}`

/** The samples of one histogram. @param buckets not cumulative, one more than there are bounds */
function histogramOf(
  labels: Readonly<Record<string, string>>,
  bounds: readonly number[],
  buckets: Float64Array,
  sum: number,
): ProcessCounter['samples'] {
  let count = 0
  const samples: ProcessCounter['samples'] = []
  buckets.forEach((value, n) => {
    count += value
    samples.push({ labels: { ...labels, le: String(bounds[n] ?? '+Inf') }, value: count, suffix: '_bucket' })
  })
  samples.push({ labels, value: sum, suffix: '_sum' }, { labels, value: count, suffix: '_count' })
  return samples
}
