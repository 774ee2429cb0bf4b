import type { WorkInFlight } from '../../contracts/registry.ts'
import { Numbered } from '../../core/collections/numbered.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { Consumer, Delivery, SubscriberInstance, SubscriberThread } from './consumer.ts'

/** It takes this long at most until a thread that stands still is noticed, milliseconds. */
const STILL_SEEN_MS = 100
/** The ids begin anew behind it. */
const LAST_ID = 0x7fffffff

/** The deliveries that threads have been given and have not answered. */
export class UnansweredDeliveries {
  readonly #clock: Clock
  readonly #byId = new Numbered<Delivery>()
  #nextId = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  nextId(): number {
    const id = this.#nextId
    this.#nextId = (id + 1) & LAST_ID
    return id
  }

  add(delivery: Delivery, id: number, instance: SubscriberInstance): void {
    delivery.id = id
    delivery.isBegun = true
    delivery.instance = instance
    delivery.deadlineMs = this.#clock.steadyMs() - instance.thread.heldMs + delivery.consumer.timeoutMs
    delivery.queue.inFlight++
    this.#byId.set(id, delivery)
  }

  get count(): number {
    return this.#byId.size
  }

  get(id: number): Delivery | undefined {
    return this.#byId.get(id)
  }

  take(id: number): Delivery | undefined {
    const delivery = this.#byId.take(id)
    if (delivery !== undefined) delivery.queue.inFlight--
    return delivery
  }

  /** Takes out all deliveries of a thread, the oldest first. */
  takeFrom(thread: SubscriberThread): Delivery[] {
    return this.#idsOf(({ instance }) => instance?.thread === thread).map((id) => this.take(id)!)
  }

  /** The deliveries whose time is up, the oldest first, except in threads that stand still: whether they are the cause is not known yet. */
  late(nowMs: number): number[] {
    return this.#idsOf(({ deadlineMs, instance }) => {
      const { isStill, heldMs } = instance!.thread
      return deadlineMs + heldMs + STILL_SEEN_MS <= nowMs && !isStill
    })
  }

  #idsOf(isWanted: (delivery: Delivery) => boolean): number[] {
    return this.#byAge(this.#byId.numbers().filter((id) => isWanted(this.#byId.get(id)!)))
  }

  /** The oldest first. */
  #byAge(ids: number[]): number[] {
    const age = (id: number): number => (this.#nextId - id) & LAST_ID
    return ids.sort((a, b) => age(b) - age(a))
  }

  countOf(consumer: Consumer): number {
    let count = 0
    for (const delivery of this.#byId.items()) if (delivery.consumer === consumer) count++
    return count
  }

  /** A thread's deliveries for the log and the black box, the oldest first. */
  worksAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    const nowMs = this.#clock.steadyMs()
    const works: WorkInFlight[] = []
    for (const id of this.#byAge(this.#byId.numbers())) {
      const { instance, event, deadlineMs, consumer } = this.#byId.get(id)!
      if (instance?.thread !== thread || unread.has(id)) continue
      const forMs = nowMs - (deadlineMs + thread.heldMs - consumer.timeoutMs)
      works.push({ kind: 'event', name: event.event, plugin: instance.plugin, id: event.id, for_ms: forMs })
    }
    return works
  }
}
