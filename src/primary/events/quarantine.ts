import { Fifo } from '../../core/collections/fifo.ts'
import type { Consumer, Delivery, SubscriberInstance, SubscriberThread } from './consumer.ts'

/** After so many deaths of its lanes an event is taken for their cause. */
export const POISON_DEATHS = 3

export interface QuarantineOptions {
  /** Gives a delivery to an instance; false when the thread did not take it. */
  send: (delivery: Delivery, instance: SubscriberInstance) => boolean
  /** Ends a delivery whose subscriber has left for good. */
  drop: (delivery: Delivery) => void
  /** Told when the quarantine lane is needed, and when it is not any more. */
  onWanted: (isWanted: boolean) => void
}

/**
 * Deliveries that were in flight when a thread died: the suspects. They are tried again one at a time, in a lane that does nothing else:
 * the next death there has one possible cause.
 */
export class Quarantine {
  readonly #waiting = new Fifo<Delivery>()
  readonly #options: QuarantineOptions
  /** Quarantine lanes whose subscribers are all known. */
  readonly #threads = new Set<SubscriberThread>()
  #current: Delivery | null = null
  #isWanted = false
  /** Something has changed: a delivery that could not be sent may be sent now. */
  #isDue = false

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  add(delivery: Delivery): void {
    this.#waiting.push(delivery)
    this.#isDue = true
    this.pump()
  }

  /** Takes out the deliveries that wait, and for which this holds. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (let left = this.#waiting.size; left > 0; left--) {
      const next = this.#waiting.shift()!
      if (isWanted(next)) taken.push(next)
      else this.#waiting.push(next)
    }
    return taken
  }

  /** A delivery is no longer under way. */
  ended(delivery: Delivery): void {
    if (delivery !== this.#current) return
    this.#current = null
    this.#isDue = true
  }

  /** Instances have come or gone, paused ones go on, or a subscriber that takes few deliveries at a time takes one more. */
  changed(): void {
    this.#isDue = true
  }

  /** A quarantine lane is up, and all its subscribers are known. */
  threadUp(thread: SubscriberThread): void {
    this.#threads.add(thread)
    this.#isDue = true
  }

  threadGone(thread: SubscriberThread): void {
    if (this.#threads.delete(thread)) this.#isDue = true
  }

  /** Sends the next suspect that can be sent, when none is under way. A suspect whose subscriber is not there waits, and others pass it. */
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

  /** Kept while no quarantine lane is up. */
  #lacksQuarantine(consumer: Consumer): boolean {
    if (consumer.quarantineInstances.length > 0) consumer.lacksQuarantine = false
    else if (this.#threads.size > 0) consumer.lacksQuarantine = true
    return consumer.lacksQuarantine
  }

  /**
   * When the quarantine lane lacks the subscriber, a lane without any other event at the moment is used. Where no lane has it the delivery waits:
   * all of them may be about to start, and whoever sees that none has it then ends what waits for it.
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

  /** A suspect that is tried elsewhere does not need the quarantine lane. */
  #tellWanted(): void {
    const isWanted =
      this.#current?.instance?.thread.isQuarantine === true ||
      this.#waiting.find(({ consumer }) => !consumer.lacksQuarantine) !== undefined
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
