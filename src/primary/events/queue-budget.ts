import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Delivery } from './consumer.ts'

/** Payload bytes of all pending deliveries at most: EVENT_BUS_MAX_QUEUE counts deliveries of any size. */
export const HUB_MAX_PENDING_BYTES = 256 * 1024 * 1024
/** Above this share of either bound no new request is let in: work that has begun needs the rest. */
export const CROWDED_SHARE = 0.75
/** Events without a cause (from timers and jobs) may fill this share: the rest is for chains of events that have begun. */
export const ROOT_SHARE = 0.9

/** All paused subscribers together, and all that waits behind dead letters, may keep this share pending: less than makes the queue crowded. */
const PAUSED_SHARE = 0.5

interface Load {
  deliveries: number
  bytes: number
}

/** Counts the deliveries that the hub has accepted and not finished: waiting, under way, delayed, or between two attempts. */
export class QueueBudget {
  readonly #maxDeliveries: number
  #deliveries = 0
  #bytes = 0
  /** Deliveries of brokers: the broker bounds their number and size. */
  #brokerDeliveries = 0
  /** Deliveries that neither a broker nor the log has. */
  #unstored = 0

  constructor(maxDeliveries: number) {
    this.#maxDeliveries = maxDeliveries
  }

  /** All deliveries that are not finished. */
  get pending(): number {
    return this.#deliveries + this.#brokerDeliveries
  }

  /** Those of them that end with the process. */
  get unstored(): number {
    return this.#unstored
  }

  get isCrowded(): boolean {
    return this.#deliveries > this.#maxDeliveries * CROWDED_SHARE || this.#bytes > HUB_MAX_PENDING_BYTES * CROWDED_SHARE
  }

  /** @throws EVENT_BUS_FULL when there is no room for that many deliveries of an event */
  check(deliveries: number, payloadBytes: number, isRoot: boolean): void {
    const share = isRoot ? ROOT_SHARE : 1
    // Rounded up: a queue of one takes one.
    if (this.#deliveries + deliveries > Math.ceil(this.#maxDeliveries * share)) {
      throw new HeddleError('EVENT_BUS_FULL', `The event queue is full: ${this.#deliveries} deliveries wait`)
    }
    if (this.#bytes + deliveries * payloadBytes > HUB_MAX_PENDING_BYTES * share) {
      throw new HeddleError('EVENT_BUS_FULL', `The event queue is full: its payloads take ${this.#bytes} bytes`)
    }
  }

  /**
   * @param pending deliveries of all paused subscribers together
   * @throws EVENT_BUS_FULL when paused subscribers cannot have that many more: they must not use up the room of the others
   */
  checkPaused(pending: Load, deliveries: number, payloadBytes: number): void {
    const what = this.#excess(pending, deliveries, payloadBytes)
    if (what === null) return
    throw new HeddleError('EVENT_BUS_FULL', `A subscriber is set aside, and ${what} wait for such subscribers already`)
  }

  /**
   * @param held what waits behind dead letters
   * @throws EVENT_BUS_FULL when no more can wait there: it must not use up the room of the others
   */
  checkHeld(held: Load, deliveries: number, payloadBytes: number): void {
    const what = this.#excess(held, deliveries, payloadBytes)
    if (what === null) return
    throw new HeddleError(
      'EVENT_BUS_FULL',
      `The event's key waits for a dead letter to be replayed or deleted, and ${what} wait for dead letters already`,
    )
  }

  #excess(pending: Load, deliveries: number, payloadBytes: number): string | null {
    const tooMany = pending.deliveries + deliveries > Math.ceil(this.#maxDeliveries * PAUSED_SHARE)
    const tooBig = pending.bytes + deliveries * payloadBytes > HUB_MAX_PENDING_BYTES * PAUSED_SHARE
    if (!tooMany && !tooBig) return null
    return tooMany ? `${pending.deliveries} events` : `${pending.bytes} bytes`
  }

  take(delivery: Delivery): void {
    const { consumer, event } = delivery
    const { requester, source } = event
    if (source === null) this.#unstored++
    const bytes = event.payload.length
    if (source?.isBroker !== true) {
      this.#deliveries++
      this.#bytes += bytes
    } else this.#brokerDeliveries++
    consumer.pending++
    consumer.pendingBytes += bytes
    if (requester !== null) requester.open++
  }

  release(delivery: Delivery): void {
    const { consumer, event } = delivery
    const { source } = event
    if (source === null) this.#unstored--
    const bytes = event.payload.length
    if (source?.isBroker !== true) {
      this.#deliveries--
      this.#bytes -= bytes
    } else this.#brokerDeliveries--
    consumer.pending--
    consumer.pendingBytes -= bytes
  }
}
