/** The clock of a run: nothing waits, whatever is next happens at once. */
import type { Clock, Timer } from '../../src/core/schedule/clock.ts'

interface Due extends Timer {
  atMs: number
  order: number
  run: () => void
  /** 0: it runs once. */
  everyMs: number
  isOver: boolean
  /** The hub has set it: one that is left at the end is a fault. */
  isTimer: boolean
}

const EPOCH_MS = 1_800_000_000_000

export class SimulatedClock implements Clock {
  /** A binary heap. */
  readonly #due: Due[] = []
  #order = 0
  #steadyMs = 0
  /** How far somebody has set the system's clock. */
  #setMs = 0
  #latestMs = EPOCH_MS
  /** Timers of the hub that are to come. */
  timers = 0
  steps = 0

  readonly nowMs = (): number => EPOCH_MS + this.#steadyMs + this.#setMs
  readonly steadyMs = (): number => this.#steadyMs
  readonly appMs = this.steadyMs

  /** The latest that it has shown. */
  readonly latestMs = (): number => Math.max(this.#latestMs, this.nowMs())

  after(ms: number, run: () => void): Timer {
    this.timers++
    // As Node takes it.
    return this.#push(Math.max(1, Math.trunc(ms)), run, 0, true)
  }

  due(ms: number, run: () => void, mostMs = ms): Timer {
    return this.after(Math.min(ms, mostMs), run)
  }

  every(ms: number, run: () => void): Timer {
    this.timers++
    return this.#push(ms, run, ms, true)
  }

  cancel(timer: Timer | undefined): void {
    const due = timer as Due | undefined
    if (due === undefined || due.isOver) return
    due.isOver = true
    this.timers--
  }

  turn(run: () => void): void {
    this.#push(0, run, 0, false)
  }

  /** Something of the world around the hub happens then. */
  in(ms: number, run: () => void): void {
    this.#push(ms, run, 0, false)
  }

  /** Somebody sets the system's clock. */
  jump(ms: number): void {
    this.#latestMs = this.latestMs()
    this.#setMs += ms
  }

  /** Lets happen what is next. */
  step(): void {
    const due = this.#shift()
    if (due === undefined) throw new Error('Nothing is to come')
    if (due.isOver) return this.step()
    this.steps++
    this.#steadyMs = Math.max(this.#steadyMs, due.atMs)
    if (due.everyMs > 0) {
      due.atMs += due.everyMs
      this.#put(due)
    } else {
      due.isOver = true
      if (due.isTimer) this.timers--
    }
    due.run()
  }

  #push(ms: number, run: () => void, everyMs: number, isTimer: boolean): Due {
    const due: Due = { atMs: this.#steadyMs + ms, order: 0, run, everyMs, isOver: false, isTimer, unref: () => due }
    this.#put(due)
    return due
  }

  #put(due: Due): void {
    due.order = ++this.#order
    const heap = this.#due
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(due, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = due
  }

  #shift(): Due | undefined {
    const heap = this.#due
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let at = 0
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}

const isBefore = (one: Due, other: Due): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
