import type { SubscribeOptions, TopologyEntry } from '../../contracts/event-bus.ts'
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
  /** Plugins whose seats take nothing. */
  readonly #paused = new Set<string>()
  /** Seats of the quarantine lane whose consumer is not there: it makes none, or events would wait for nobody. */
  readonly #orphans = new Map<string, Seat[]>()

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

  /** Adds a seat to the consumer of `group` on `event`. The options of the last regular seat are the consumer's. */
  addSeat(event: string, group: string, options: SubscribeOptions, seat: Seat): Consumer {
    const topic = this.topic(event)
    const { isQuarantine } = seat.host
    let consumer = this.consumer(event, group)
    if (consumer === undefined) {
      const key = `${event}\0${group}`
      const orphans = this.#orphans.get(key) ?? []
      consumer = new Consumer(event, group, options, orphans)
      if (isQuarantine) this.#orphans.set(key, orphans)
      else {
        this.#orphans.delete(key)
        topic.consumers.push(consumer)
      }
    } else if (!isQuarantine) consumer.setOptions(options)
    seat.isPaused = this.#paused.has(seat.plugin)
    if (isQuarantine) consumer.quarantineSeats.push(seat)
    else consumer.addSeat(seat)
    topic.refresh()
    return consumer
  }

  /** Pauses or resumes all seats of a plugin, and those that it will have. */
  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
    for (const { consumers } of this.#topics.values())
      for (const consumer of consumers) consumer.pause(plugin, isPaused)
    for (const seat of [...this.#orphans.values()].flat()) if (seat.plugin === plugin) seat.isPaused = isPaused
  }

  /** What is pending for plugins that are paused, all of them together. */
  pausedPending(): { deliveries: number; bytes: number } {
    const paused = { deliveries: 0, bytes: 0 }
    for (const { consumers } of this.#topics.values()) {
      for (const consumer of consumers) {
        if (!consumer.isPaused) continue
        paused.deliveries += consumer.pending
        paused.bytes += consumer.pendingBytes
      }
    }
    return paused
  }

  get hasPaused(): boolean {
    return this.#paused.size > 0
  }

  /** @returns true when that was the consumer's last seat: it is gone */
  removeSeat(consumer: Consumer, seat: Seat): boolean {
    const topic = this.topic(consumer.event)
    for (const seats of [consumer.seats, consumer.quarantineSeats]) {
      const at = seats.indexOf(seat)
      if (at >= 0) seats.splice(at, 1)
    }
    if (seat.host.isQuarantine) return false
    const isGone = consumer.seats.length === 0
    if (isGone) this.drop(consumer)
    else topic.refresh()
    return isGone
  }

  drop(consumer: Consumer): void {
    const topic = this.topic(consumer.event)
    topic.consumers = topic.consumers.filter((each) => each !== consumer)
    const { event, group, quarantineSeats } = consumer
    if (quarantineSeats.length > 0) this.#orphans.set(`${event}\0${group}`, quarantineSeats)
    topic.refresh()
  }

  /** Consumers without a seat. */
  vacant(): Consumer[] {
    return [...this.#topics.values()].flatMap(({ consumers }) => consumers.filter(({ seats }) => seats.length === 0))
  }

  /** A thread has died: its seats leave, its consumers stay and wait for the next thread's. */
  removeHost(host: EventHost): void {
    for (const topic of this.#topics.values()) {
      for (const consumer of topic.consumers) {
        for (const seats of [consumer.seats, consumer.quarantineSeats]) {
          for (let n = seats.length - 1; n >= 0; n--) if (seats[n]!.host === host) seats.splice(n, 1)
        }
      }
    }
    for (const [key, seats] of this.#orphans) {
      const left = seats.filter((seat) => seat.host !== host)
      if (left.length === 0) this.#orphans.delete(key)
      else this.#orphans.set(key, left)
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
