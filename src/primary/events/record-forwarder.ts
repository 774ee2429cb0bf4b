// Forwards event records to the lanes' listeners.
import type { EventRecord } from '../../contracts/event-bus.ts'
import { causality, NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import type { Timer } from '../../core/schedule/clock.ts'
import type { FailureRecord, Feed, LogRecord } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { SubscriberThread } from './consumer.ts'
import type { Hub } from './hub.ts'

/** Maximum delay of a record of another thread at a lane's listener, milliseconds. */
const FEED_MS = 50
/** Maximum number of records waiting for one lane; above it the oldest are dropped. */
const FEED_MAX_RECORDS = 10_000

interface LaneFeeds {
  feeds: Set<Feed>
  traces: EventRecord[]
  failures: FailureRecord[]
  logs: LogRecord[]
}

/** Forwards records of other threads to the lanes whose plugins listen, in batches. */
export class RecordForwarder {
  readonly #hub: Hub
  readonly #lanes = new Map<Lane, LaneFeeds>()
  readonly #threadOf: (lane: Lane) => SubscriberThread
  #timer: Timer | undefined
  #stopTraces: (() => void) | undefined
  #stopFailures: (() => void) | undefined

  /** @param threadOf returns the hub's object for the lane */
  constructor(hub: Hub, hostOf: (lane: Lane) => SubscriberThread) {
    this.#hub = hub
    this.#threadOf = hostOf
  }

  listen(lane: Lane, feed: Feed, on: boolean): void {
    const waiting = this.#lanes.get(lane) ?? { feeds: new Set<Feed>(), traces: [], failures: [], logs: [] }
    if (on) waiting.feeds.add(feed)
    else waiting.feeds.delete(feed)
    if (waiting.feeds.size === 0) this.#lanes.delete(lane)
    else this.#lanes.set(lane, waiting)
    this.#update()
  }

  gone(lane: Lane): void {
    if (this.#lanes.delete(lane)) this.#update()
  }

  /** @param origin the lane that made the record and has told its own listeners, or null */
  log(record: LogRecord, origin: Lane | null): void {
    for (const [lane, { feeds, logs }] of this.#lanes)
      if (lane !== origin && feeds.has('logs')) pushBounded(logs, record)
  }

  #update(): void {
    const wanted = new Set<Feed>()
    for (const { feeds } of this.#lanes.values()) for (const feed of feeds) wanted.add(feed)
    if (wanted.has('traces')) {
      this.#stopTraces ??= this.#hub.records.addListener((record, origin) => {
        for (const [lane, { feeds, traces }] of this.#lanes) {
          if (feeds.has('traces') && this.#threadOf(lane) !== origin) pushBounded(traces, record)
        }
      })
    } else {
      this.#stopTraces?.()
      this.#stopTraces = undefined
    }
    if (wanted.has('failures')) {
      this.#stopFailures ??= this.#hub.records.addFailureListener((failure) => {
        const cause = causality.getStore()
        const record = {
          failure,
          ancestors: cause?.ancestors ?? '',
          requestId: cause?.requestId ?? null,
          trace: cause?.trace?.traceContext ?? NO_TRACE_CONTEXT,
        }
        for (const { feeds, failures } of this.#lanes.values()) if (feeds.has('failures')) pushBounded(failures, record)
      })
    } else {
      this.#stopFailures?.()
      this.#stopFailures = undefined
    }
    if (wanted.size > 0) this.#timer ??= this.#hub.clock.every(FEED_MS, () => this.#flush()).unref()
    else {
      this.#hub.clock.cancel(this.#timer)
      this.#timer = undefined
    }
  }

  #flush(): void {
    for (const [lane, waiting] of this.#lanes) {
      const { traces, failures, logs } = waiting
      if (traces.length + failures.length + logs.length === 0) continue
      lane.post({ type: 'feed', traces, failures, logs })
      waiting.traces = []
      waiting.failures = []
      waiting.logs = []
    }
  }
}

function pushBounded<T>(list: T[], item: T): void {
  if (list.length >= FEED_MAX_RECORDS) list.shift()
  list.push(item)
}
