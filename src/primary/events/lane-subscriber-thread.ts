import type { EventFrame, PayloadForm } from '../../transport/frames/event-frame.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { SubscriberThread } from './consumer.ts'

/** Deliveries in flight in one lane at most. Requests have a budget of their own, so that a flood of events cannot starve them. */
export const LANE_MAX_DELIVERIES = 1024

/** A lane as the hub sees it. */
export class LaneSubscriberThread implements SubscriberThread {
  readonly #lane: Lane

  constructor(lane: Lane) {
    this.#lane = lane
  }

  get deliveriesInFlight(): number {
    return this.#lane.deliveriesInFlight
  }

  get isQuarantine(): boolean {
    return this.#lane.role === 'quarantine'
  }

  get isStill(): boolean {
    return !this.#lane.responsive
  }

  get heldMs(): number {
    return this.#lane.heldMs
  }

  get hasRoom(): boolean {
    const { state, responsive, deliveriesInFlight } = this.#lane
    const max = this.isQuarantine ? 1 : LANE_MAX_DELIVERIES
    return state === 'ready' && responsive && deliveriesInFlight < max
  }

  send(deliveryId: number, frame: EventFrame, form: PayloadForm): boolean {
    return this.#lane.sendDelivery(deliveryId, frame, form)
  }

  abandon(deliveryId: number): void {
    this.#lane.abandonDelivery(deliveryId)
  }
}
