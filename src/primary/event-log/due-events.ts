// Events that are due later, in the order of their times.
import type { Timer } from '../../core/schedule/clock.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { WaitingDelivery } from '../../transport/log-changes.ts'
import { type ClockJump, COUNTED_MAX, type DuePlace, PAGE_POSITIONS, type SqlLog } from './sql-log.ts'

/** Of events that are due within this time the positions are here; what is due later is in the table alone. Milliseconds. */
export const DUE_AHEAD_MS = 30_000
/** The table is looked at again when less than this is left of it, milliseconds. */
const LOOK_AHEAD_MS = 20_000
/** Pause before the table is looked at again after it could not be read, milliseconds. */
const RETRY_MS = 1000
/** Smaller changes of the clock are corrections, milliseconds. */
const JUMP_MS = 1000
/** Two threads read the clock one after the other, milliseconds. */
const MARGIN_MS = 100
/** A retry that is due later than this leaves the hub until then, milliseconds. */
const RETRY_LEAVES_MS = 1000
/** Events whose lanes have handed them on are remembered until they are due, so many: where there were more, each counts as handed on. */
const TOLD_MAX = 100_000

/**
 * Stored events that wait for their time, or deliveries of them for their next attempt: in the log, and not in the hub. Here are the positions of those that are due soon.
 *
 * An event that comes before the table has been read up to its time is found there; one that comes after is kept here. So none is missed, and one
 * that is found twice is delivered once: its position is known by then.
 */
export class DueEvents {
  readonly #soon = new TimeHeap()
  /** Events that are due later, as far as is known. */
  #later = 0
  /** Up to where the table has been read. */
  #read: DuePlace = { dueMs: 0, seq: 0 }
  /** The table is being read up to this time: what comes now and is due before may have been missed. */
  #aheadMs = 0
  #notBeforeMs = 0
  /** Up to this time events have been let go. */
  #movedMs = 0
  /** Events of which deliveries wait for their next attempt, until they are here again. The index of the times does not have them. */
  readonly #retries = new Set<number>()
  /** Positions of events that their lanes have handed on, and that are not due yet. */
  readonly #told = new Set<number>()
  #isToldAll = true
  /** Positions that a look has found of this process's, and nobody has handed on: the lane has died between its commit and that. */
  readonly #untold = new Set<number>()
  /** Both clocks and the next free position at the last look. */
  #seen: { nowMs: number; steadyMs: number; next: number } | null = null
  /** The first position of this process. */
  #first: number | null = null
  /** Changes of the clock that the tables do not have yet. */
  readonly #jumps: ClockJump[] = []
  #timer: Timer | undefined
  #timerMs = Number.POSITIVE_INFINITY
  readonly #log: SqlLog
  readonly #onDue: () => void

  /** @param onDue told when an event is due */
  constructor(log: SqlLog, onDue: () => void) {
    this.#log = log
    this.#onDue = onDue
  }

  /** Events that wait for their time. */
  get count(): number {
    return this.#soon.size + this.#later
  }

  /** Everything that was due up to this time has been let go, milliseconds since the epoch. */
  get movedMs(): number {
    return this.#movedMs
  }

  /** Nothing has been stored by this process: what is due by now is an earlier one's, and is read with all that it has left. */
  begin(nowMs: number): void {
    this.#followClock()
    if (this.#read.dueMs > 0) return
    this.#read = { dueMs: nowMs, seq: 0 }
    this.#movedMs = nowMs
    this.#aheadMs = nowMs
  }

  /** Keeps an event that is stored until it is due. @returns false when it may go: what is due then has been let go */
  keep(dueMs: number, seq: number): boolean {
    this.#followClock()
    if (dueMs <= this.#movedMs) return false
    this.#untold.delete(seq)
    if (this.#told.size < TOLD_MAX) this.#told.add(seq)
    else this.#isToldAll = false
    if (dueMs <= this.#aheadMs) this.#add(dueMs, seq)
    else this.#later++
    return true
  }

  /** Keeps an event of which a delivery is tried again then. @returns false when that is so soon that it stays in the hub */
  keepRetry(dueMs: number, seq: number): boolean {
    this.#followClock()
    if (dueMs - this.#log.clock.nowMs() < RETRY_LEAVES_MS) return false
    this.#retries.add(seq)
    this.#add(dueMs, seq)
    return true
  }

  /** Keeps an event that was read when the next attempts of all its deliveries are due later, and nothing waits behind it. */
  keepRead({ seq, key }: EventFrame, left: readonly WaitingDelivery[] | null): boolean {
    if (key !== null || left === null || left.length === 0) return false
    if (left.some(({ deaths }) => deaths > 0)) return false
    return this.keepRetry(Math.min(...left.map(({ dueMs }) => dueMs)), seq)
  }

  #add(dueMs: number, seq: number): void {
    this.#soon.push(dueMs, seq)
    this.#wake()
  }

  /** True while deliveries of some event wait for their next attempt. */
  get hasRetries(): boolean {
    return this.#retries.size > 0
  }

  isRetry(seq: number): boolean {
    return this.#retries.has(seq)
  }

  /** Its deliveries are here again. */
  retried(seq: number): void {
    this.#retries.delete(seq)
  }

  /** A lane is gone: perhaps it has stored events that it could not hand on. */
  laneGone(nowMs: number): void {
    this.#read = { dueMs: Math.min(this.#read.dueMs, nowMs), seq: 0 }
    this.#aheadMs = this.#read.dueMs
  }

  /** Notices that the clock was set: a delay that this process has stored lasts as long as it was meant to. */
  #followClock(): void {
    const { clock, nextFree } = this.#log
    const before = this.#seen
    const seen = { nowMs: clock.nowMs(), steadyMs: clock.steadyMs(), next: nextFree }
    this.#seen = seen
    if (seen.next > 0) this.#first ??= seen.next
    if (before === null) return
    const ms = 2 * Math.round((seen.nowMs - before.nowMs - (seen.steadyMs - before.steadyMs)) / 2)
    if (Math.abs(ms) < JUMP_MS || this.#first === null) return
    const range = { first: this.#first, next: before.next, sinceMs: before.nowMs + ms - MARGIN_MS, untilMs: seen.nowMs }
    this.#jumps.push({ ms, ...range, retries: [...this.#retries] })
    // Retries alone are not found by their times.
    for (const [dueMs, seq] of this.#soon.takeAll())
      if (this.#retries.has(seq)) this.#soon.push(dueMs + ms, seq)
      else this.#later++
    this.laneGone(Math.min(this.#movedMs, this.#movedMs + ms))
    this.#movedMs = this.#read.dueMs
    this.#notBeforeMs = 0
    this.#timerMs = Number.POSITIVE_INFINITY
    this.#wake()
  }

  /** Reads of the table what is due soon, when it is time to. */
  async look(): Promise<void> {
    this.#followClock()
    while (this.#jumps.length > 0) {
      await this.#log.moveDue(this.#jumps[0]!)
      this.#jumps.shift()
    }
    const nowMs = this.#log.clock.nowMs()
    if (nowMs < this.#aheadMs - LOOK_AHEAD_MS && this.#read.dueMs === this.#aheadMs) return
    if (nowMs < this.#notBeforeMs) return
    if (this.#read.dueMs >= this.#aheadMs) this.#aheadMs = nowMs + DUE_AHEAD_MS
    this.#notBeforeMs = nowMs + RETRY_MS
    const due = await this.#log.readDue(this.#read, this.#aheadMs)
    this.#notBeforeMs = 0
    for (const { dueMs, seq } of due) {
      this.#soon.push(dueMs, seq)
      if (this.#isToldAll && this.#first !== null && seq >= this.#first && !this.#told.has(seq)) this.#untold.add(seq)
    }
    this.#later = Math.max(0, this.#later - due.length)
    const isAll = due.length < PAGE_POSITIONS
    // Some were delivered without being read here: a lane had died.
    if (isAll && this.#later > 0) {
      const later = await this.#log.countDue(this.#aheadMs)
      if (later < COUNTED_MAX) this.#later = later
    }
    this.#read = isAll ? { dueMs: this.#aheadMs, seq: Number.MAX_SAFE_INTEGER } : due.at(-1)!
    this.#wake()
  }

  /** Lets go what is due, in the order of the times. */
  *due(): Generator<number> {
    this.#followClock()
    const nowMs = this.#log.clock.nowMs()
    this.#movedMs = nowMs
    while (this.#soon.firstMs <= nowMs) {
      const seq = this.#soon.shift()!
      this.#told.delete(seq)
      yield seq
    }
    this.#wake()
  }

  /** @returns whether no lane has handed on an event that is due now, so that nobody has recorded it; once */
  wasUntold(seq: number): boolean {
    return this.#untold.delete(seq)
  }

  #wake(): void {
    const { firstMs } = this.#soon
    if (firstMs >= this.#timerMs || firstMs === Number.POSITIVE_INFINITY) return
    const { clock } = this.#log
    clock.cancel(this.#timer)
    this.#timerMs = firstMs
    this.#timer = clock
      .after(Math.max(1, firstMs - clock.nowMs()), () => {
        this.#timerMs = Number.POSITIVE_INFINITY
        this.#onDue()
        this.#wake()
      })
      .unref()
  }

  close(): void {
    this.#log.clock.cancel(this.#timer)
  }
}

/** What is due at some time: a binary heap, in two flat arrays of numbers, 16 bytes an item. */
export class TimeHeap {
  readonly #dueMs: number[] = []
  readonly #items: number[] = []

  get size(): number {
    return this.#items.length
  }

  /** When the first item is due, milliseconds; infinity when there is none. */
  get firstMs(): number {
    return this.#dueMs[0] ?? Number.POSITIVE_INFINITY
  }

  /** @param item a number; of two that are due at the same time the smaller one comes first */
  push(dueMs: number, item: number): void {
    let at = this.#items.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(dueMs, item, parent)) break
      this.#move(parent, at)
      at = parent
    }
    this.#dueMs[at] = dueMs
    this.#items[at] = item
  }

  /** Removes all. @returns each with its time, in no order */
  takeAll(): [dueMs: number, item: number][] {
    const items = this.#items.splice(0)
    return this.#dueMs.splice(0).map((dueMs, n) => [dueMs, items[n]!])
  }

  /** Removes the first item. @returns undefined when there is none */
  shift(): number | undefined {
    const first = this.#items[0]
    const dueMs = this.#dueMs.pop()
    const item = this.#items.pop()
    const { size } = this
    if (dueMs === undefined || item === undefined || size === 0) return first
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && this.#isBefore(this.#dueMs[child + 1]!, this.#items[child + 1]!, child)) child++
      if (this.#isBefore(dueMs, item, child)) break
      this.#move(child, at)
      at = child
    }
    this.#dueMs[at] = dueMs
    this.#items[at] = item
    return first
  }

  #isBefore(dueMs: number, item: number, other: number): boolean {
    const otherMs = this.#dueMs[other]!
    return dueMs < otherMs || (dueMs === otherMs && item < this.#items[other]!)
  }

  #move(from: number, to: number): void {
    this.#dueMs[to] = this.#dueMs[from]!
    this.#items[to] = this.#items[from]!
  }
}
