import { timeOrderedId } from '../../core/causality/ids.ts'
import { envelopeOf, keyColumnOf } from '../../runtime/event-log/event-rows.ts'
import type { DeadRow } from '../../transport/log-changes.ts'
import type { LogMemory } from '../../transport/memory/log-memory.ts'
import type {
  Consumer,
  DeliverySource,
  FailedDelivery,
  RetryPlan,
  StoredShare,
  StoredShares,
} from '../events/consumer.ts'
import type { ChangeWriter } from './change-writer.ts'
import type { DeliveryRow } from './log-reader.ts'

/** What a letter takes beside its texts, bytes: a guess. */
const LETTER_BYTES = 1024

/** A stored event that the hub has: it is forgotten when its last delivery has ended. */
class StoredEvent implements StoredShares {
  readonly seq: number
  /** Processes that have died while they handled it. */
  deaths = 0
  /** Deliveries that have not ended. */
  readonly open: StoredDelivery[] = []
  hasDeliveries = false
  /** Its deliveries have rows of their own. */
  isSplit: boolean
  readonly #events: StoredEvents
  /** The deliveries that were left when it was read from the log; null: all. */
  readonly #left: readonly DeliveryRow[] | null

  constructor(events: StoredEvents, seq: number, left: readonly DeliveryRow[] | null) {
    this.#events = events
    this.seq = seq
    this.isSplit = left !== null
    this.#left = left
  }

  shareOf({ group, broadcast }: Consumer): StoredShare | null {
    const left = this.#left
    const row = left === null ? undefined : left.find(({ grp }) => grp === group)
    if (left !== null && row === undefined) return null
    const source = new StoredDelivery(this.#events, this, group, broadcast)
    this.open.push(source)
    this.hasDeliveries = true
    if (row === undefined) return { source, attempt: 1, deaths: this.deaths, dueMs: 0 }
    source.attempt = Number(row.attempt)
    source.deaths = Number(row.deaths)
    return {
      source,
      attempt: source.attempt,
      deaths: Math.max(source.deaths, this.deaths),
      dueMs: Number(row.due_ms),
    }
  }
}

/** One delivery of a stored event, as the hub tells what becomes of it. */
class StoredDelivery implements DeliverySource {
  readonly isBroker = false
  readonly event: StoredEvent
  readonly group: string
  /** Every thread gets it: it has no row of its own. */
  readonly isBroadcast: boolean
  /** Number of its next attempt, and the threads that died of it. */
  attempt: number
  deaths: number
  hasEnded = false
  readonly #events: StoredEvents

  constructor(events: StoredEvents, event: StoredEvent, group: string, isBroadcast: boolean) {
    this.#events = events
    this.event = event
    this.group = group
    this.isBroadcast = isBroadcast
    this.attempt = 1
    this.deaths = 0
  }

  begun(): void {}

  retrying(plan: RetryPlan): void {
    this.#events.retrying(this, plan)
  }

  storeDeadLetter(letter: FailedDelivery): Promise<void> {
    return this.#events.storeLetter(this, letter)
  }

  ended(isDone: boolean): void {
    this.#events.ended(this, isDone)
  }
}

/** The stored events that the hub has at present, and what has become of them since the last commit. */
export class StoredEvents {
  readonly #live = new Map<number, StoredEvent>()
  readonly #writer: ChangeWriter
  readonly #memory: LogMemory
  /** Events that are stored and not here: they wait in the log. */
  #waiting = 0
  /** This process ends: what has not ended stays in the log. */
  #isEnding = false

  constructor(writer: ChangeWriter, memory: LogMemory) {
    this.#writer = writer
    this.#memory = memory
  }

  /** True when the event is here, or has just been forgotten. */
  knows(seq: number): boolean {
    return this.#live.has(seq) || this.#writer.isForgetting(seq)
  }

  get count(): number {
    return this.#live.size
  }

  /** @param left its deliveries, when only some of them are left; null: all */
  begin(seq: number, left: readonly DeliveryRow[] | null): StoredEvent {
    const event = new StoredEvent(this, seq, left)
    this.#live.set(seq, event)
    this.#count()
    return event
  }

  /** Nobody was there to take it: it is done. */
  forget(event: StoredEvent): void {
    this.#live.delete(event.seq)
    this.#writer.forget(event.seq, event.isSplit)
    this.#count()
  }

  /** Nobody was there to take it, and it stays in the log. */
  leave(event: StoredEvent): void {
    this.#live.delete(event.seq)
    this.#count()
  }

  retrying(delivery: StoredDelivery, plan: RetryPlan): void {
    if (delivery.isBroadcast) return
    const { attempt, deaths, error } = plan
    const { event } = delivery
    // The hub's clock has fractions, and a column for integers takes none.
    const dueMs = Math.ceil(plan.dueMs)
    delivery.attempt = attempt
    delivery.deaths = deaths
    if (!event.isSplit) {
      event.isSplit = true
      for (const other of event.open) {
        if (other === delivery || other.isBroadcast) continue
        this.#writer.waiting({
          seq: event.seq,
          group: other.group,
          attempt: other.attempt,
          deaths: other.deaths,
          dueMs: 0,
          error: '',
        })
      }
    }
    this.#writer.waiting({ seq: event.seq, group: delivery.group, attempt, deaths, dueMs, error })
  }

  /** The letter and the end of its delivery are in one commit. Resolves after it. */
  storeLetter(delivery: StoredDelivery, letter: FailedDelivery): Promise<void> {
    this.#end(delivery)
    return this.#writer.letter(rowOf(letter))
  }

  ended(delivery: StoredDelivery, isDone: boolean): void {
    if (delivery.hasEnded) return
    if (isDone || !this.#isEnding) return this.#end(delivery)
    delivery.hasEnded = true
    remove(delivery)
    if (delivery.event.open.length === 0) this.#live.delete(delivery.event.seq)
  }

  #end(delivery: StoredDelivery): void {
    delivery.hasEnded = true
    remove(delivery)
    const { event } = delivery
    if (event.open.length === 0) this.forget(event)
    else if (event.isSplit && !delivery.isBroadcast) this.#writer.done(event.seq, delivery.group)
  }

  /** From now on what the hub gives up stays in the log. */
  end(): void {
    this.#isEnding = true
  }

  /** @param waiting events that are in the log and not here */
  set waiting(waiting: number) {
    this.#waiting = waiting
    this.#count()
  }

  #count(): void {
    this.#memory.stored = this.#live.size + this.#waiting
  }
}

export type { StoredDelivery, StoredEvent }

function remove(delivery: StoredDelivery): void {
  const { open } = delivery.event
  const at = open.indexOf(delivery)
  if (at >= 0) open.splice(at, 1)
}

function rowOf({ event, group, subscriber, error, attempts, blackBox }: FailedDelivery): DeadRow {
  const box = blackBox === null ? null : JSON.stringify({ ...blackBox, steps: [] })
  const payload = Buffer.from(event.payload, 'latin1').toString()
  const envelope = envelopeOf({ ...event, trace: event.producer })
  return {
    id: `dl_${timeOrderedId()}`,
    eventId: event.id,
    event: event.event,
    group,
    subscriber,
    key: keyColumnOf(event.key),
    envelope,
    payload,
    error,
    attempts,
    blackBox: box,
    bytes: LETTER_BYTES + event.payload.length + envelope.length + 2 * error.length + (box?.length ?? 0),
    atMs: Date.now(),
  }
}
