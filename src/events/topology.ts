import type { SubscribeOptions, TopologyEntry } from '../contracts/event-bus.ts'
import { Consumer, type EventHost, type Seat } from './consumer.ts'

/** One event name: who consumes it, who emits it, how often it fired. */
export class Topic {
  consumers: Consumer[] = []
  /** Names of the subscribing plugins: a new list whenever it changes, so that traces keep the one that was true for them. */
  subscribers: readonly string[] = []
  readonly emitters = new Set<string>()
  fireCount = 0

  refresh(): void {
    this.subscribers = [...new Set(this.consumers.flatMap(({ seats }) => seats.map(({ plugin }) => plugin)))]
  }
}

/** Who subscribes to what, in which threads. */
export class Topology {
  readonly #topics = new Map<string, Topic>()

  topic(event: string): Topic {
    let topic = this.#topics.get(event)
    if (topic === undefined) {
      topic = new Topic()
      this.#topics.set(event, topic)
    }
    return topic
  }

  hasConsumer(event: string): boolean {
    return (this.#topics.get(event)?.consumers.length ?? 0) > 0
  }

  consumer(event: string, group: string): Consumer | undefined {
    return this.#topics.get(event)?.consumers.find((each) => each.group === group)
  }

  /** Adds a seat to the consumer of `group` on `event`. The first seat's options are the consumer's. */
  addSeat(event: string, group: string, options: SubscribeOptions, seat: Seat): Consumer {
    const topic = this.topic(event)
    let consumer = this.consumer(event, group)
    if (consumer === undefined) {
      consumer = new Consumer(event, group, options)
      topic.consumers.push(consumer)
    }
    consumer.seats.push(seat)
    topic.refresh()
    return consumer
  }

  /** @returns true when that was the consumer's last seat: it is gone */
  removeSeat(consumer: Consumer, seat: Seat): boolean {
    const topic = this.topic(consumer.event)
    const at = consumer.seats.indexOf(seat)
    if (at >= 0) consumer.seats.splice(at, 1)
    const isGone = consumer.seats.length === 0
    if (isGone) topic.consumers = topic.consumers.filter((each) => each !== consumer)
    topic.refresh()
    return isGone
  }

  /** A thread has died: its seats leave, its consumers stay and wait for the next thread's. */
  removeHost(host: EventHost): void {
    for (const topic of this.#topics.values()) {
      for (const { seats } of topic.consumers) {
        for (let n = seats.length - 1; n >= 0; n--) if (seats[n]!.host === host) seats.splice(n, 1)
      }
    }
  }

  entries(): Record<string, TopologyEntry> {
    const entries: Record<string, TopologyEntry> = {}
    for (const [event, { emitters, subscribers, fireCount }] of this.#topics) {
      entries[event] = { emitters: [...emitters], subscribers: [...subscribers], fire_count: fireCount }
    }
    return entries
  }
}
