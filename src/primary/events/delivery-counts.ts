// Counts what became of deliveries, by event and subscriber, for Prometheus.
import type { ProcessCounter } from '../../contracts/registry.ts'

/** Subscribers with figures of their own. Deliveries of further ones count for the subscriber `other`. */
export const COUNTED_SUBSCRIBERS_MAX = 1000

/**
 * How deliveries end: handled, a dead letter, taken back, too late for their lifetime, or dropped from memory because their subscriber or its
 * thread was gone.
 */
export const OUTCOMES = ['done', 'dead', 'cancelled', 'expired', 'lost'] as const
/** Why an attempt is followed by another. Only `failed` counts as an attempt: see EVENT_BUS_WAIT_FOR_TOOLS and RetryLater. */
export const RETRIES = ['failed', 'put_off', 'unavailable', 'lane_died'] as const

/** The deliveries of one subscriber since the start of the process. */
export type SubscriberCounts = Record<(typeof OUTCOMES)[number] | (typeof RETRIES)[number], number>

interface Subscriber {
  readonly event: string
  readonly group: string
  /** Null until something has become of one of its deliveries. */
  counts: SubscriberCounts | null
}

export class DeliveryCounts {
  readonly #all = new Map<string, { labels: Record<string, string>; counts: SubscriberCounts }>()

  /** Remembered by the subscriber. One that comes back goes on with the counts that it had. */
  of(subscriber: Subscriber): SubscriberCounts {
    subscriber.counts ??= this.#find(subscriber.event, subscriber.group)
    return subscriber.counts
  }

  #find(event: string, subscriber: string): SubscriberCounts {
    const key = `${event} ${subscriber}`
    const known = this.#all.get(key)
    if (known !== undefined) return known.counts
    if (this.#all.size >= COUNTED_SUBSCRIBERS_MAX && subscriber !== 'other') return this.#find('', 'other')
    const counts = {
      done: 0,
      dead: 0,
      cancelled: 0,
      expired: 0,
      lost: 0,
      failed: 0,
      put_off: 0,
      unavailable: 0,
      lane_died: 0,
    }
    this.#all.set(key, { labels: { event, subscriber }, counts })
    return counts
  }

  /** @param subscribers are there from 0 on: what a counter began with is no increase to Prometheus */
  metrics(subscribers: Iterable<Subscriber> = []): ProcessCounter[] {
    for (const subscriber of subscribers) this.of(subscriber)
    const samplesOf = (label: string, names: readonly (keyof SubscriberCounts)[]): ProcessCounter['samples'] =>
      [...this.#all.values()].flatMap(({ labels, counts }) =>
        names.map((name) => ({ labels: { ...labels, [label]: name }, value: counts[name] })),
      )
    return [
      {
        name: 'heddle_deliveries_total',
        kind: 'counter',
        help: 'Deliveries that have ended, by what became of them.',
        samples: samplesOf('outcome', OUTCOMES),
      },
      {
        name: 'heddle_delivery_retries_total',
        kind: 'counter',
        help: 'Attempts at deliveries that are followed by another one, by the reason.',
        samples: samplesOf('reason', RETRIES),
      },
    ]
  }
}
