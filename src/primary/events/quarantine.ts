// Tries suspects one at a time, in the quarantine lane.
import { Fifo } from '../../core/collections/fifo.ts'
import type { Consumer, Delivery, SubscriberInstance, SubscriberThread } from './consumer.ts'
import { become } from './delivery-state.ts'

/** Number of lane crashes after which an event counts as their cause. */
export const POISON_DEATHS = 3

export interface QuarantineOptions {
  /** Sends a delivery to an instance; false if the thread did not take it. */
  send: (delivery: Delivery, instance: SubscriberInstance) => boolean
  /** Ends a delivery whose subscriber has unsubscribed. */
  drop: (delivery: Delivery) => void
  /** Called when the quarantine lane is needed, and when it no longer is. */
  onWanted: (isWanted: boolean) => void
}

/**
 * The suspects: deliveries in flight when a thread died. They are tried again one at a time, in a lane that does nothing else:
 * the next crash there has one possible cause.
 */
export class Quarantine {
  readonly #waiting = new Fifo<Delivery>()
  readonly #options: QuarantineOptions
  /** Quarantine lanes with known subscribers. */
  readonly #threads = new Set<SubscriberThread>()
  #current: Delivery | null = null
  #isWanted = false
  /** Sends a waiting suspect if that is possible now. */
  #isDue = false

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  add(delivery: Delivery): void {
    become(delivery, 'suspect')
    this.#waiting.push(delivery)
    this.#isDue = true
    this.pump()
  }

  /** Takes out the matching waiting suspects. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (let left = this.#waiting.size; left > 0; left--) {
      const next = this.#waiting.shift()!
      if (isWanted(next)) taken.push(next)
      else this.#waiting.push(next)
    }
    return taken
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  items(): Iterable<Delivery> {
    return this.#waiting
  }

  /** A delivery is no longer in flight. */
  ended(delivery: Delivery): void {
    if (delivery !== this.#current) return
    this.#current = null
    this.#isDue = true
  }

  /** Instances were added, removed or resumed, or a subscriber with a concurrency limit has room. */
  changed(): void {
    this.#isDue = true
  }

  /** A quarantine lane is ready, and all its subscribers are known. */
  threadUp(thread: SubscriberThread): void {
    this.#threads.add(thread)
    this.#isDue = true
  }

  threadGone(thread: SubscriberThread): void {
    if (this.#threads.delete(thread)) this.#isDue = true
  }

  /** Sends the next possible suspect if none is in flight. A suspect without a subscriber waits, and others overtake it. */
  pump(): void {
    if (!this.#isDue) return
    this.#isDue = false
    for (let left = this.#waiting.size; left > 0 && this.#current === null; left--) {
      const delivery = this.#waiting.shift()!
      if (delivery.consumer.isGone) this.#options.drop(delivery)
      else if (!this.#try(delivery)) this.#waiting.push(delivery)
    }
    this.#tellWanted()
  }

  /** Keeps its last answer while no quarantine lane is ready. */
  #lacksQuarantine(consumer: Consumer): boolean {
    if (consumer.quarantineInstances.length > 0) consumer.lacksQuarantine = false
    else if (this.#threads.size > 0) consumer.lacksQuarantine = true
    return consumer.lacksQuarantine
  }

  /**
   * If the quarantine lane lacks the subscriber, a lane with no other event in flight is used. If no lane has it, the delivery waits:
   * all lanes may be starting. `Hub.dropVacant` ends it if none of them subscribes.
   */
  #try(delivery: Delivery): boolean {
    const { instances, quarantineInstances } = delivery.consumer
    const lacksQuarantine = this.#lacksQuarantine(delivery.consumer)
    if (!delivery.queue.hasRoom) return false
    const instance = lacksQuarantine
      ? instances.find(isFree)
      : quarantineInstances.find(({ thread, isPaused }) => thread.hasRoom && !isPaused)
    if (instance === undefined) return false
    this.#current = delivery
    if (this.#options.send(delivery, instance)) return true
    this.#current = null
    return false
  }

  /** A suspect tried elsewhere does not need the quarantine lane. */
  #tellWanted(): void {
    const isWanted =
      this.#current?.instance?.thread.isQuarantine === true ||
      this.#waiting.find(({ consumer }) => !consumer.lacksQuarantine && !consumer.isPaused) !== undefined
    if (isWanted === this.#isWanted) return
    this.#isWanted = isWanted
    this.#options.onWanted(isWanted)
  }
}

/** True when its thread has no other event. */
const isFree = ({ thread, isPaused }: SubscriberInstance): boolean =>
  thread.deliveriesInFlight === 0 && thread.hasRoom && !isPaused

export function poisonMessage({ blackBox }: Delivery): string {
  if (blackBox === null) return `The process or its thread died ${POISON_DEATHS} times while it handled this event`
  if (blackBox.reason === 'process') return blackBox.message
  const where = blackBox.guilty?.line ? ` (${blackBox.guilty.line})` : ''
  return `The thread died ${POISON_DEATHS} times while it handled this event: ${blackBox.message}${where}`
}
