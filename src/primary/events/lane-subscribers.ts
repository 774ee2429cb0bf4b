import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Seat } from './consumer.ts'
import type { Hub } from './hub.ts'
import { LaneEventHost } from './lane-event-host.ts'

interface Seated {
  readonly host: LaneEventHost
  /** By the subscriber's number in the lane: its seat, and what ends its subscription. */
  readonly seats: Map<number, { seat: Seat; leave: () => void }>
}

/** What each lane has subscribed to, in the hub's terms. */
export class LaneSeats {
  readonly #hub: Hub
  readonly #lanes = new Map<Lane, Seated>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  /** What the hub knows a lane by. */
  hostOf(lane: Lane): LaneEventHost {
    return this.#of(lane).host
  }

  add(lane: Lane, local: number, { event, identity, plugin, options }: SubscriptionManifest): void {
    const { host, seats } = this.#of(lane)
    const seat: Seat = { host, local, plugin, identity, isPaused: false }
    seats.set(local, { seat, leave: this.#hub.subscribe(event, options.group ?? identity, options, seat) })
  }

  /** All that the lane hosts has been added. */
  complete(lane: Lane): void {
    if (lane.role === 'quarantine') this.#hub.hostUp(this.#of(lane).host)
  }

  remove(lane: Lane, local: number): void {
    const { seats } = this.#of(lane)
    seats.get(local)?.leave()
    seats.delete(local)
  }

  seatOf(lane: Lane, local: number): Seat | null {
    return this.#lanes.get(lane)?.seats.get(local)?.seat ?? null
  }

  /** The lane gets no more events, and finishes those that it has. */
  leave(lane: Lane): void {
    this.#hub.hostLeaving(this.#of(lane).host)
  }

  /** Events that the lane is at. @param unread deliveries that it never began */
  worksOf(lane: Lane, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#hub.inFlightAt(this.#of(lane).host, unread)
  }

  /** The lane is gone: what it had in flight goes to the others. */
  forget(lane: Lane, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.#hub.hostGone(this.#of(lane).host, unread, blackBox)
    this.#lanes.delete(lane)
  }

  /** No lane has the subscribers that have no seat now. */
  dropVacant(): void {
    this.#hub.dropVacant()
  }

  #of(lane: Lane): Seated {
    let seated = this.#lanes.get(lane)
    if (seated === undefined) {
      seated = { host: new LaneEventHost(lane), seats: new Map() }
      this.#lanes.set(lane, seated)
    }
    return seated
  }
}
