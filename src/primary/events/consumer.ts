import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { DeliverySpan, TraceScope } from '../../contracts/tracing.ts'
import type { Carrier } from '../../core/causality/carrier.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

/** A thread that runs subscribers. */
export interface EventHost {
  /** It gets nothing but deliveries that threads died of. */
  readonly isQuarantine: boolean
  /** Deliveries that it has not answered yet. */
  readonly deliveriesInFlight: number
  /** Its loop stands still: what it has may have brought that about, and is not taken from it before it goes on or dies. */
  readonly isStill: boolean
  /** True when it takes one more. */
  readonly hasRoom: boolean
  /** False when it could not take it after all. */
  send(deliveryId: number, frame: EventFrame): boolean
  /** Nobody waits for its answer any more: it counts as in flight no longer, whenever its handler ends. */
  abandon(deliveryId: number): void
}

/** Who waits for the first object that a subscriber returns. */
export interface Asker {
  /** Deliveries that may still reply. */
  open: number
  /** All of those that have ended have failed. */
  onlyFailures: boolean
  reply(json: string): void
  /** All have failed. */
  failed(error: string): void
}

/** A delivery that has failed for good. */
export interface Failed {
  event: HubEvent
  group: string
  subscriber: string
  error: string
  attempts: number
  /** Of the last death, when threads died of it. */
  blackBox: BlackBox | null
  /** What listeners do about it belongs here; null while tracing is off. */
  trace: TraceScope | null
}

/** The broker that a delivery comes from, when that is not the hub itself. */
export interface DeliverySource {
  /** Stores a dead letter. Resolves when it is safe, however long that takes. */
  keep(letter: Failed): Promise<void>
  /** @param isDone true when it was handled or is a dead letter by now; false when nobody here takes it any more */
  ended(isDone: boolean): void
}

/** An event that a broker has given to this process, on its way to one consumer. */
export interface Adoption {
  group: string
  /** Where it was last; of a broadcast, the only one that may have it. */
  seat: Seat | null
  attempt: number
  deaths: number
  /** Of the last of these deaths. */
  blackBox: BlackBox | null
  /** Why this attempt has failed; null when it is to be made. */
  fault: string | null
  /** When it has begun elsewhere and is traced. */
  span: DeliverySpan | null
  asker: Asker | null
  source: DeliverySource
}

/** One subscriber in one thread. */
export interface Seat {
  readonly host: EventHost
  /** Its number in that thread. */
  readonly local: number
  readonly plugin: string
  readonly identity: string
  /** Its plugin is set aside: what comes for it waits. */
  isPaused: boolean
}

/**
 * An event that the hub has taken. Its `a`, `b` and `trace` are set anew for each delivery: a host copies them, or the whole, before it returns from `send`.
 * Its payload is a string of bytes (see EventFrame).
 */
export interface HubEvent extends EventFrame {
  /** Not delivered any more from here on, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** The span that published. */
  producer: Carrier
}

/** One event on its way to one consumer (or, broadcast, to one seat of it). */
export interface Delivery {
  /** New for each attempt, so that a late answer to an attempt that was given up finds nobody. */
  id: number
  readonly consumer: Consumer
  readonly event: HubEvent
  attempt: number
  /** Lanes that died while they were at it. From the first on it is a suspect, and goes to the quarantine lane. */
  deaths: number
  /** What is known of the last of them. */
  blackBox: BlackBox | null
  /** Some thread has had it. */
  isBegun: boolean
  /** Its last attempt has failed. */
  isGivenUp: boolean
  /** From its first attempt on, when it is traced. */
  span: DeliverySpan | null
  /** Where it is, while it is somewhere. */
  seat: Seat | null
  readonly line: Line
  /** When the attempt counts as failed, milliseconds since the epoch. */
  deadlineMs: number
  readonly asker: Asker | null
  readonly source: DeliverySource | null
}

export const deliveryOf = (
  line: Line,
  event: HubEvent,
  asker: Asker | null,
  source: DeliverySource | null = null,
): Delivery => ({
  id: 0,
  consumer: line.consumer,
  line,
  event,
  attempt: 1,
  deaths: 0,
  blackBox: null,
  isBegun: false,
  isGivenUp: false,
  span: null,
  seat: null,
  deadlineMs: 0,
  asker,
  source,
})

/** What waits for one consumer: for any seat of it, or (broadcast) for one seat, so that no seat's copies wait for another's. */
export class Line {
  readonly consumer: Consumer
  /** Only this seat may get what waits here. */
  readonly seat: Seat | null
  /** Deliveries that no thread had room for. */
  readonly waiting = new Fifo<Delivery>()
  /** Keys that are being handled, each with those that wait behind it. */
  readonly keyed = new Map<string, Fifo<Delivery>>()

  constructor(consumer: Consumer, seat: Seat | null) {
    this.consumer = consumer
    this.seat = seat
  }
}

/** A logical subscriber: all the seats that share one group on one event. Each event goes to one of them (broadcast: to all). */
export class Consumer {
  readonly event: string
  readonly group: string
  retries = 0
  backoffMs = 0
  timeoutMs = 0
  broadcast = false
  readonly seats: Seat[] = []
  /** In the quarantine lane, for suspects. */
  readonly quarantineSeats: Seat[]
  /** The quarantine lane that is up, or was up last, does not have it: its suspects are tried elsewhere. */
  lacksQuarantine = false
  /** Deliveries that are accepted and not finished, wherever they are, and the bytes of their payloads. */
  pending = 0
  pendingBytes = 0
  /** Its last seat has left, of its own will: what comes back to it (a retry, a delay, the next of a key) ends here. */
  isGone = false
  readonly line: Line = new Line(this, null)
  readonly #seatLines = new WeakMap<Seat, Line>()
  /** Stands for all of them while there is none. */
  #lastSeat: Seat | null = null

  constructor(event: string, group: string, options: SubscribeOptions, quarantineSeats: Seat[]) {
    this.event = event
    this.group = group
    this.quarantineSeats = quarantineSeats
    this.setOptions(options)
  }

  /** New code may have other options: those of the seat that came last hold. */
  setOptions(options: SubscribeOptions): void {
    this.retries = options.retries ?? 0
    this.backoffMs = options.backoffMs ?? 500
    this.timeoutMs = options.timeoutMs ?? 30_000
    this.broadcast = options.broadcast ?? false
  }

  addSeat(seat: Seat): void {
    this.seats.push(seat)
    this.#lastSeat = seat
  }

  pause(plugin: string, isPaused: boolean): void {
    for (const seat of [...this.seats, ...this.quarantineSeats, this.#lastSeat])
      if (seat?.plugin === plugin) seat.isPaused = isPaused
  }

  /** True when all of its seats are paused, or the last of them was when its thread went. */
  get isPaused(): boolean {
    return this.seats.length > 0 ? this.seats.every(({ isPaused }) => isPaused) : this.#lastSeat?.isPaused === true
  }

  lineOf(seat: Seat): Line {
    let line = this.#seatLines.get(seat)
    if (line === undefined) {
      line = new Line(this, seat)
      this.#seatLines.set(seat, line)
    }
    return line
  }

  /** The seat with room whose thread has the fewest deliveries. */
  pickSeat(): Seat | null {
    const { seats } = this
    let best: Seat | null = null
    for (let n = 0; n < seats.length; n++) {
      const seat = seats[n]!
      if (seat.isPaused || !seat.host.hasRoom) continue
      if (best === null || seat.host.deliveriesInFlight < best.host.deliveriesInFlight) best = seat
    }
    return best
  }
}
