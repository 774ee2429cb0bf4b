import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Consumer, Delivery, SubscriberInstance, SubscriberThread } from './consumer.ts'

/** It takes this long at most until a thread that stands still is noticed, milliseconds. */
const STILL_SEEN_MS = 100

/** The deliveries that threads have been given and have not answered. */
export class UnansweredDeliveries {
  readonly #byId = new Map<number, Delivery>()
  #nextId = 1

  nextId(): number {
    const id = this.#nextId
    this.#nextId = (id + 1) & 0x7fffffff
    return id
  }

  add(delivery: Delivery, id: number, instance: SubscriberInstance): void {
    delivery.id = id
    delivery.isBegun = true
    delivery.instance = instance
    delivery.deadlineMs = steadyMs() - instance.thread.heldMs + delivery.consumer.timeoutMs
    delivery.queue.inFlight++
    this.#byId.set(id, delivery)
  }

  get(id: number): Delivery | undefined {
    return this.#byId.get(id)
  }

  take(id: number): Delivery | undefined {
    const delivery = this.#byId.get(id)
    if (delivery !== undefined) this.#remove(id, delivery)
    return delivery
  }

  /** Takes out all deliveries of a thread, the oldest first. */
  takeFrom(thread: SubscriberThread): Delivery[] {
    return this.#takeIf(({ instance }) => instance?.thread === thread)
  }

  /** Takes out the deliveries whose time is up, except in threads that stand still: whether they are the cause is not known yet. */
  takeLate(nowMs: number): Delivery[] {
    return this.#takeIf(({ deadlineMs, instance }) => {
      const { isStill, heldMs } = instance!.thread
      return deadlineMs + heldMs + STILL_SEEN_MS <= nowMs && !isStill
    })
  }

  #takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (const [id, delivery] of this.#byId) {
      if (!isWanted(delivery)) continue
      this.#remove(id, delivery)
      taken.push(delivery)
    }
    return taken
  }

  #remove(id: number, { queue }: Delivery): void {
    this.#byId.delete(id)
    queue.inFlight--
  }

  countOf(consumer: Consumer): number {
    let count = 0
    for (const delivery of this.#byId.values()) if (delivery.consumer === consumer) count++
    return count
  }

  /** A thread's deliveries for the log and the black box, the oldest first. */
  worksAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    const nowMs = steadyMs()
    const works: WorkInFlight[] = []
    for (const [id, { instance, event, deadlineMs, consumer }] of this.#byId) {
      if (instance?.thread !== thread || unread.has(id)) continue
      const forMs = nowMs - (deadlineMs + thread.heldMs - consumer.timeoutMs)
      works.push({ kind: 'event', name: event.event, plugin: instance.plugin, id: event.id, for_ms: forMs })
    }
    return works
  }
}
