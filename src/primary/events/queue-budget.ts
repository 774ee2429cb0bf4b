// Limits the number and size of the hub's deliveries.
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Consumer, Delivery } from './consumer.ts'

/** Maximum payload bytes of all pending deliveries: EVENT_BUS_MAX_QUEUE counts deliveries of any size. */
export const HUB_MAX_PENDING_BYTES = 256 * 1024 * 1024
/** Share of either bound above which new requests are refused: running work needs the rest. */
export const CROWDED_SHARE = 0.75
/** Share of either bound for events without a cause (from timers and jobs): the rest is for chains of events in progress. */
export const ROOT_SHARE = 0.9
/**
 * Deliveries of a subscriber that are being handled count against it beyond this share of the queue: a handler may publish to its own subscriber,
 * however small the queue is, and lanes that have taken all of the queue leave no room for others.
 */
const HANDLED_SHARE = 0.125
/** Share of either bound for deliveries behind dead letters, of all subscribers together: less than one subscriber may have. */
const HELD_SHARE = 0.25

interface Load {
  deliveries: number
  bytes: number
}

/** Counts pending deliveries: waiting, in flight, delayed, or between two attempts. */
export class QueueBudget {
  readonly #maxDeliveries: number
  readonly #handledMax: number
  #deliveries = 0
  #bytes = 0
  /** Deliveries of brokers: the broker bounds their number and size. */
  #brokerDeliveries = 0
  /** Deliveries in neither a broker nor the store. */
  #unstored = 0

  constructor(maxDeliveries: number) {
    this.#maxDeliveries = maxDeliveries
    this.#handledMax = Math.ceil(maxDeliveries * HANDLED_SHARE)
  }

  /** All deliveries that are not finished. */
  get pending(): number {
    return this.#deliveries + this.#brokerDeliveries
  }

  /** Pending deliveries that end with the process. */
  get unstored(): number {
    return this.#unstored
  }

  get isCrowded(): boolean {
    return this.#deliveries > this.#maxDeliveries * CROWDED_SHARE || this.#bytes > HUB_MAX_PENDING_BYTES * CROWDED_SHARE
  }

  /**
   * Each subscriber may use as much as is free, so a slow one leaves room: one alone gets half of the queue, two get a third each, and what they handle.
   * Source: the dynamic threshold of Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
   * @throws EVENT_BUS_FULL when there is no room for an event of these consumers
   */
  check(consumers: readonly Consumer[], payloadBytes: number, isRoot: boolean): void {
    const share = isRoot ? ROOT_SHARE : 1
    // Rounded up: a queue of one takes one.
    const free = Math.ceil(this.#maxDeliveries * share) - this.#deliveries
    const freeBytes = HUB_MAX_PENDING_BYTES * share - this.#bytes
    if (consumers.length > free) {
      throw new HeddleError('EVENT_BUS_FULL', `The event queue is full: ${this.#deliveries} deliveries wait`)
    }
    const bytes = consumers.length * payloadBytes
    if (bytes > freeBytes) {
      const full = `The event queue is full: its payloads take ${this.#bytes} bytes, and ${bytes} more have no room`
      throw new HeddleError('EVENT_BUS_FULL', full)
    }
    for (const { group, pending, pendingBytes, queue } of consumers) {
      const waiting = pending - Math.min(queue.inFlight, this.#handledMax)
      if (waiting < free && (payloadBytes === 0 || pendingBytes < freeBytes)) continue
      const what = waiting >= free ? `${pending} deliveries` : `${pendingBytes} bytes`
      throw new HeddleError(
        'EVENT_BUS_FULL',
        `${group} is too far behind: ${what} wait or are being handled, and the rest of the queue is for other subscribers`,
      )
    }
  }

  /**
   * @param held deliveries behind dead letters
   * @throws EVENT_BUS_FULL when no more may wait there
   */
  checkHeld(held: Load, deliveries: number, payloadBytes: number): void {
    const tooMany = held.deliveries + deliveries > Math.ceil(this.#maxDeliveries * HELD_SHARE)
    const tooBig = held.bytes + deliveries * payloadBytes > HUB_MAX_PENDING_BYTES * HELD_SHARE
    if (!tooMany && !tooBig) return
    const what = tooMany ? `${held.deliveries} events` : `${held.bytes} bytes`
    throw new HeddleError(
      'EVENT_BUS_FULL',
      `The event's key is blocked by a dead letter, and ${what} wait behind dead letters already: replay or delete some`,
    )
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
