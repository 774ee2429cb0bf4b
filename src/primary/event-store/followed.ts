// The events that somebody follows, and how it stands with them.
import type { FollowState } from '../../contracts/event-bus.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import type { Meant } from '../../runtime/events/cancelling.ts'
import type { DeliveryChange } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { EventIndex } from './event-index.ts'
import { readFollowed } from './followed-rows.ts'
import type { StoredCancels } from './stored-cancels.ts'

type Subscriber = FollowState['subscribers'][number]

/** Interval at which all events that are followed are read again: other processes may have them, milliseconds. */
const LOOK_MS = 1000
/** An answer comes after this time, even if nothing has changed, milliseconds. */
const ANSWER_MS = 15_000
/** What was read since then is current, milliseconds: afterwards it is told of changes only while somebody waits for them. */
const FRESH_MS = 50
/** The outcome of a delivery is stored within this time, as a rule, milliseconds. */
const STORED_MS = 5000
/** Changes are gathered so long, milliseconds. */
const GATHER_MS = 5
/** An event of which nothing is known is looked for so long: it may be on its way, milliseconds. */
const UNKNOWN_MS = 2000
/** An event is forgotten so long after somebody has asked for it, milliseconds. */
const FORGOTTEN_MS = 60_000
/** Events that are followed in a process. */
const FOLLOWED_MAX = 10_000

/** The outcome of a delivery, and when it was known, by the steady clock. */
interface Ended extends Subscriber {
  readonly atMs: number
}

interface Waiter {
  readonly seen: string
  readonly resolve: (state: FollowState) => void
  readonly reject: (error: unknown) => void
  readonly timer: Timer
}

interface Followed {
  readonly id: string
  state: FollowState
  /** Outcomes of deliveries that have ended in this process. */
  readonly ended: Map<string, Ended>
  /** As its rows have told; null: it had none. */
  meant: (Meant & { seq: number }) | null
  readonly waiters: Set<Waiter>
  readonly sinceMs: number
  readMs: number
  askedMs: number
}

export interface FollowedEventsParts {
  hub: Hub
  clock: Clock
  /** Null without a database, or while that is not open: then only this process is asked. */
  database: () => StoreDatabase | null
  /** True while the database is not open yet: what is stored is not known. */
  isOpening: () => boolean
  index: EventIndex
  /** Null where nothing stored is taken back. */
  cancels: () => Pick<StoredCancels, 'look' | 'isTakenBack'> | null
}

export class FollowedEvents {
  readonly #parts: FollowedEventsParts
  readonly #all = new Map<string, Followed>()
  readonly #due = new Set<string>()
  #version = 0
  /** idle ──► gathering ──► reading ──► idle */
  #state: 'idle' | 'gathering' | 'reading' = 'idle'
  #lookTimer: Timer | undefined
  #isStopping = false

  constructor(parts: FollowedEventsParts) {
    this.#parts = parts
  }

  /** See `HubServices.followed`. */
  async followed(id: string, seen: string): Promise<FollowState> {
    const { clock } = this.#parts
    if (this.#isStopping) return { version: seen, subscribers: [], isStopping: true }
    const followed = this.#of(id)
    followed.askedMs = clock.steadyMs()
    const isFresh = clock.steadyMs() - followed.readMs < FRESH_MS
    if (isFresh && followed.state.version !== seen) return followed.state
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        seen,
        resolve,
        reject,
        timer: clock.after(ANSWER_MS, () => this.#answer(followed, waiter)).unref(),
      }
      followed.waiters.add(waiter)
      if (!isFresh) this.touched(id)
    })
  }

  #of(id: string): Followed {
    const { clock, hub } = this.#parts
    const known = this.#all.get(id)
    if (known !== undefined) return known
    if (this.#all.size >= FOLLOWED_MAX) this.#forgetIdle()
    if (this.#all.size >= FOLLOWED_MAX)
      throw new HeddleError('EVENT_BUS_FULL', `${FOLLOWED_MAX} events are followed in this process already`)
    const followed: Followed = {
      id,
      state: { version: '', subscribers: [] },
      ended: new Map(),
      meant: null,
      waiters: new Set(),
      sinceMs: clock.steadyMs(),
      readMs: Number.NEGATIVE_INFINITY,
      askedMs: clock.steadyMs(),
    }
    this.#all.set(id, followed)
    hub.watch(this.#all, (change) => this.#changed(change))
    this.#lookTimer ??= clock.every(LOOK_MS, () => this.#look()).unref()
    return followed
  }

  /** Those that nobody waits for, the first ones first. */
  #forgetIdle(): void {
    let left = Math.ceil(FOLLOWED_MAX / 10)
    for (const { id, waiters } of this.#all.values()) {
      if (waiters.size > 0) continue
      this.#all.delete(id)
      if (--left === 0) return
    }
  }

  /** Those that nobody waits for are read anew. */
  forgetEnded(): void {
    for (const { id, waiters } of this.#all.values()) if (waiters.size === 0) this.#all.delete(id)
  }

  /** The process stops: those who follow are told, and come back to another one. */
  stop(): void {
    this.#isStopping = true
    for (const followed of this.#all.values())
      for (const waiter of [...followed.waiters]) this.#answer(followed, waiter)
  }

  /** A delivery in this process has begun, or ended. */
  #changed({ id, subscriber, outcome, attempt, error }: DeliveryChange): void {
    const ended = this.#all.get(id)?.ended
    if (outcome === null) ended?.delete(subscriber)
    else
      ended?.set(subscriber, {
        atMs: this.#parts.clock.steadyMs(),
        subscriber,
        state: outcome,
        attempt,
        lastN: 0,
        // Other processes, and this one after a restart, have no message of an event that was taken back.
        ...(error === null || outcome === 'cancelled' ? {} : { error }),
      })
    this.touched(id)
  }

  /** Something may have changed. */
  touched(id: string): void {
    if (!this.#all.has(id)) return
    this.#due.add(id)
    this.#schedule()
  }

  /** @param ids null: any */
  rang(ids: readonly string[] | null): void {
    for (const id of ids ?? this.#all.keys()) this.touched(id)
  }

  #look(): void {
    const { clock, hub } = this.#parts
    for (const followed of this.#all.values()) {
      const isIdle = followed.waiters.size === 0 && clock.steadyMs() - followed.askedMs > FORGOTTEN_MS
      if (isIdle) this.#all.delete(followed.id)
      else if (followed.waiters.size > 0) this.#due.add(followed.id)
    }
    if (this.#all.size === 0) {
      clock.cancel(this.#lookTimer)
      this.#lookTimer = undefined
      hub.watch(null)
    } else this.#schedule()
  }

  #schedule(): void {
    if (this.#state !== 'idle' || this.#due.size === 0) return
    this.#state = 'gathering'
    this.#parts.clock.after(GATHER_MS, () => void this.#read()).unref()
  }

  async #read(): Promise<void> {
    this.#state = 'reading'
    const ids = [...this.#due]
    const startMs = this.#parts.clock.steadyMs()
    this.#due.clear()
    // What ends during the read is read again.
    const ended = new Map(ids.map((id) => [id, new Map(this.#all.get(id)?.ended)]))
    try {
      const db = this.#parts.database()
      if (db !== null) await this.#parts.index.want()
      const found = db === null ? null : await readFollowed(db, ids)
      // Another process may have taken back what was read to be gone, and this one not have heard of it.
      if (found !== null && ids.some((id) => this.#hasLeft(id, found.subscribers.get(id)!)))
        await this.#parts.cancels()?.look()
      const open = this.#parts.hub.deliveriesOf(new Set(ids))
      for (const id of ids) {
        const followed = this.#all.get(id)
        if (followed === undefined) continue
        followed.meant = found?.meant.get(id) ?? followed.meant
        const subscribers = this.#subscribersOf(followed, ended.get(id)!, found?.subscribers.get(id), open.get(id))
        this.#tell(followed, subscribers, startMs)
      }
    } catch {
      // The next look tries again.
    }
    this.#state = 'idle'
    this.#schedule()
  }

  /** True if a delivery that was there is no longer. */
  #hasLeft(id: string, stored: ReadonlyMap<string, Subscriber>): boolean {
    const followed = this.#all.get(id)
    if (followed === undefined || followed.meant === null) return false
    const { state, ended } = followed
    return state.subscribers.some((before) => {
      const { subscriber: name } = before
      return !isOver(before) && !stored.has(name) && !ended.has(name)
    })
  }

  #subscribersOf(
    { meant, state }: Followed,
    ended: ReadonlyMap<string, Ended>,
    stored: ReadonlyMap<string, Subscriber> = new Map(),
    open: ReadonlyMap<string, { isRunning: boolean; attempt: number }> = new Map(),
  ): Subscriber[] {
    const all = new Map(stored)
    for (const [name, { isRunning, attempt }] of open) {
      const { place: _, at: __, error: ___, ...known } = all.get(name) ?? ({ lastN: 0 } as Subscriber)
      if (isRunning) all.set(name, { ...known, subscriber: name, state: 'running', attempt })
      // Its row says more, where it has one.
      else if (all.get(name)?.state !== 'waiting')
        all.set(name, { ...known, subscriber: name, state: 'waiting', attempt })
    }
    // Its outcome is known here before it is stored; later the rows say what has become of it, perhaps in another process.
    for (const [name, { atMs, ...outcome }] of ended) {
      const isOld = this.#parts.clock.steadyMs() - atMs > STORED_MS && all.has(name)
      if (open.has(name) || isOld) continue
      all.set(name, {
        ...outcome,
        ...withoutState(all.get(name)),
        state: outcome.state,
        lastN: all.get(name)?.lastN ?? 0,
      })
    }
    // What is not there any more has ended elsewhere.
    const isCancelled = meant !== null && this.#parts.cancels()?.isTakenBack(meant, meant.seq) === true
    for (const { place: _, at: __, ...before } of state.subscribers)
      if (!all.has(before.subscriber) && before.subscriber !== '')
        all.set(before.subscriber, {
          ...before,
          state: isOver(before) ? before.state : isCancelled ? 'cancelled' : 'done',
        })
    return [...all.values()].map(shown).sort((a, b) => (a.subscriber < b.subscriber ? -1 : 1))
  }

  #tell(followed: Followed, subscribers: Subscriber[], readMs: number): void {
    const { clock, isOpening } = this.#parts
    if (subscribers.length === 0) {
      // By when it was read: the process may have stood still since.
      if (readMs - followed.sinceMs < UNKNOWN_MS || isOpening()) return
      this.#all.delete(followed.id)
      const unknown = `Nothing is known of the event ${followed.id}: nobody has published it, or it has ended, and its subscriber has neither resultMs nor reported anything`
      for (const { reject, timer } of followed.waiters) {
        clock.cancel(timer)
        reject(new HeddleError('EVENT_UNKNOWN', unknown))
      }
      return
    }
    followed.readMs = clock.steadyMs()
    if (JSON.stringify(subscribers) !== JSON.stringify(followed.state.subscribers))
      followed.state = { version: String(++this.#version), subscribers }
    for (const waiter of followed.waiters) if (waiter.seen !== followed.state.version) this.#answer(followed, waiter)
  }

  #answer(followed: Followed, waiter: Waiter): void {
    this.#parts.clock.cancel(waiter.timer)
    if (!followed.waiters.delete(waiter)) return
    waiter.resolve(this.#isStopping ? { ...followed.state, isStopping: true } : followed.state)
  }
}

/** A result that is there before the end is of an earlier replay, or not settled yet. */
const shown = (subscriber: Subscriber): Subscriber => {
  if (isOver(subscriber) || subscriber.result === undefined) return subscriber
  const { result: _, ...rest } = subscriber
  return rest
}

const isOver = ({ state }: Subscriber): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

function withoutState(subscriber: Subscriber | undefined): Partial<Subscriber> {
  if (subscriber === undefined) return {}
  const { state: _, place: __, at: ___, error: ____, attempt: _____, ...rest } = subscriber
  return rest
}
