// The subscriptions of all threads, and the names of events.
import type { SubscriberOptions, TopologyEntry } from '../../contracts/event-bus.ts'
import { EVENT_NAMES_MAX, tooManyNames } from '../../runtime/events/publication.ts'
import { Consumer, type SubscriberInstance, type SubscriberThread } from './consumer.ts'
import { type Pause, Pauses } from './pauses.ts'

/** One event name: its consumers, its emitters, its count. */
export class Topic {
  consumers: Consumer[] = []
  readonly emitters = new Set<string>()
  fireCount = 0
  /** Of these, the ones that this process has published. */
  ownCount = 0
  #subscribers: readonly string[] | null = null

  /** Names of the subscribing plugins. Each change makes a new list: a trace record keeps the list of its time. */
  get subscribers(): readonly string[] {
    this.#subscribers ??= [...new Set(this.consumers.flatMap(({ instances }) => instances.map(({ plugin }) => plugin)))]
    return this.#subscribers
  }

  /** The consumers have changed. The list is made when it is asked for: at a start thousands may subscribe to one event. */
  refresh(): void {
    this.#subscribers = null
  }
}

const NO_CONSUMERS: readonly Consumer[] = []
const NO_NAMES: readonly string[] = []

/** The subscriptions of all threads. */
export class Topology {
  readonly #topics = new Map<string, Topic>()
  /** Number of event names of each plugin. */
  readonly #namesOf = new Map<string, number>()
  readonly #maxNames: number
  /** Paused plugins: their instances get no events. */
  readonly #paused = new Set<string>()
  /** Paused subscribers, future ones included. */
  readonly pauses = new Pauses()
  /** Instances in the quarantine lane without a consumer. They do not create a consumer: its events would wait forever. */
  readonly #unattached = new Map<string, SubscriberInstance[]>()

  /** @param maxNames EVENT_BUS_MAX_NAMES */
  constructor(maxNames = EVENT_NAMES_MAX) {
    this.#maxNames = maxNames
  }

  /** Returns the topic of an event published by a plugin. @throws EVENT_NAMES_LIMIT */
  emitting(event: string, emitter: string): Topic {
    const known = this.#topics.get(event)
    if (known?.emitters.has(emitter)) return known
    const names = this.#namesOf.get(emitter) ?? 0
    if (names >= this.#maxNames) throw tooManyNames(emitter, event, this.#maxNames)
    this.#namesOf.set(emitter, names + 1)
    const topic = known ?? this.topic(event)
    topic.emitters.add(emitter)
    return topic
  }

  /** The code is new: plugins at their limit start again from zero. Their event names without subscribers are forgotten. */
  forgetNames(): void {
    for (const [emitter, names] of this.#namesOf) {
      if (names < this.#maxNames) continue
      this.#namesOf.delete(emitter)
      for (const [event, topic] of this.#topics) {
        if (!topic.emitters.delete(emitter)) continue
        if (topic.emitters.size === 0 && topic.consumers.length === 0) this.#topics.delete(event)
      }
    }
  }

  consumersOf(event: string): readonly Consumer[] {
    return this.#topics.get(event)?.consumers ?? NO_CONSUMERS
  }

  publishedOf(event: string): number {
    return this.#topics.get(event)?.ownCount ?? 0
  }

  /** Names of the subscribing plugins. */
  subscribersOf(event: string): readonly string[] {
    return this.#topics.get(event)?.subscribers ?? NO_NAMES
  }

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

  /** Adds an instance to the consumer of `group` on `event`. The consumer takes the options of the last regular instance. */
  addInstance(event: string, group: string, options: SubscriberOptions, instance: SubscriberInstance): Consumer {
    const { isQuarantine } = instance.thread
    let consumer = this.consumer(event, group)
    if (consumer === undefined) {
      const key = `${event}\0${group}`
      const unattached = this.#unattached.get(key) ?? []
      consumer = new Consumer(event, group, options, unattached)
      consumer.isPaused = this.pauses.has(event, group)
      if (isQuarantine) this.#unattached.set(key, unattached)
      else {
        this.#unattached.delete(key)
        const topic = this.topic(event)
        consumer.publishedBefore = topic.ownCount
        topic.consumers.push(consumer)
      }
    } else if (!isQuarantine) consumer.setOptions(options)
    instance.isPaused = this.#paused.has(instance.plugin)
    if (isQuarantine) consumer.quarantineInstances.push(instance)
    else consumer.addInstance(instance)
    this.#topics.get(event)?.refresh()
    return consumer
  }

  /** Pauses or resumes all instances of a plugin, future ones included. */
  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
    for (const { consumers } of this.#topics.values())
      for (const consumer of consumers) consumer.pause(plugin, isPaused)
    for (const instance of [...this.#unattached.values()].flat())
      if (instance.plugin === plugin) instance.isPaused = isPaused
  }

  /** @returns the names of the subscribers that are paused or resumed by it */
  setPauses(pauses: readonly Pause[]): Pick<Pause, 'event' | 'group'>[] {
    const changed = this.pauses.replace(pauses)
    for (const { event, group } of changed) {
      const consumer = this.consumer(event, group)
      if (consumer !== undefined) consumer.isPaused = this.pauses.has(event, group)
    }
    return changed
  }

  /** @returns true if it was the consumer's last instance: the consumer is removed */
  removeInstance(consumer: Consumer, instance: SubscriberInstance): boolean {
    const { event, group, quarantineInstances } = consumer
    for (const instances of [consumer.instances, quarantineInstances]) {
      const at = instances.indexOf(instance)
      if (at >= 0) instances.splice(at, 1)
    }
    const key = `${event}\0${group}`
    if (quarantineInstances.length === 0 && this.#unattached.get(key) === quarantineInstances)
      this.#unattached.delete(key)
    // A new consumer of the same name may be there by now.
    if (instance.thread.isQuarantine || this.consumer(event, group) !== consumer) return false
    const isGone = consumer.instances.length === 0
    if (isGone) this.drop(consumer)
    else this.topic(event).refresh()
    return isGone
  }

  drop(consumer: Consumer): void {
    const topic = this.topic(consumer.event)
    topic.consumers = topic.consumers.filter((each) => each !== consumer)
    const { event, group, quarantineInstances } = consumer
    if (quarantineInstances.length > 0) this.#unattached.set(`${event}\0${group}`, quarantineInstances)
    if (topic.consumers.length === 0 && topic.emitters.size === 0) this.#topics.delete(event)
    else topic.refresh()
  }

  /** All consumers of all events. */
  consumers(): Consumer[] {
    return [...this.#topics.values()].flatMap(({ consumers }) => consumers)
  }

  /** Consumers without an instance. */
  vacant(): Consumer[] {
    return this.consumers().filter(({ instances }) => instances.length === 0)
  }

  /** A thread has died: its instances leave; its consumers stay and wait for the next thread's instances. */
  removeThread(thread: SubscriberThread): void {
    for (const topic of this.#topics.values()) {
      // Its plugins stay subscribers: the next thread has them again.
      void topic.subscribers
      for (const consumer of topic.consumers) {
        for (const instances of [consumer.instances, consumer.quarantineInstances]) {
          for (let n = instances.length - 1; n >= 0; n--) if (instances[n]!.thread === thread) instances.splice(n, 1)
        }
      }
    }
    for (const [key, instances] of this.#unattached) {
      const left = instances.filter((instance) => instance.thread !== thread)
      if (left.length === 0) this.#unattached.delete(key)
      else this.#unattached.set(key, left)
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
