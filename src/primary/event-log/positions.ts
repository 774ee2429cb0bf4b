// Positions of stored events: those that wait, and those that nobody has handed on.
import { PAGE_POSITIONS, type SqlLog } from './sql-log.ts'

/** A commit is over after this time, one way or the other, milliseconds. Positions are taken before it. */
const COMMIT_MAX_MS = 30_000

/** How often it looks, milliseconds. */
const LOOK_EVERY_MS = 30_000
/** When it looks after the death of a lane, and how long after that once more, milliseconds: what is unknown twice was not on its way. */
const FIRST_LOOK_MS = 100
const SECOND_LOOK_MS = 1000

/** Up to where positions had been taken at a time. */
interface Mark {
  atMs: number
  next: number
}

/**
 * Finds events that are stored and that nobody has handed on: their lane died after the commit, or the outcome of the commit was not known.
 * Positions are not in the order of the commits, so it looks again at all that was taken in the last 30 seconds.
 */
export class Reconciler {
  readonly #marks: Mark[] = []
  readonly #log: SqlLog
  /** Everything before has been accounted for. */
  #floor: number
  /** Unknown at the last look: perhaps only on their way. */
  #unknown = new Set<number>()
  /** When it looks next, by the clock of `look`. */
  #dueMs = 0
  /** Looks that are due soon: each comes when the one before it is over, however late that is. */
  #hurried = 0
  #isUncertain = false

  /** @param first the first position of this process */
  constructor(log: SqlLog, first: number) {
    this.#log = log
    this.#floor = first
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#dueMs
  }

  /** True after a lane's death, until it is known what the lane had stored and not handed on: of a key it may be the older. */
  get isUncertain(): boolean {
    return this.#isUncertain
  }

  /** A lane is gone: perhaps it has stored events that it could not hand on. */
  laneGone(nowMs: number): void {
    this.#hurried = 2
    this.#isUncertain = true
    this.#dueMs = Math.min(this.#dueMs, nowMs + FIRST_LOOK_MS)
  }

  /**
   * @param dueMs events that are due later are read when they are, milliseconds since the epoch
   * @param isKnown whether an event is in hand already
   * @returns events that were unknown at the look before, too
   */
  async look(nowMs: number, dueMs: number, isKnown: (seq: number) => boolean): Promise<number[]> {
    this.#hurried = Math.max(0, this.#hurried - 1)
    this.#dueMs = nowMs + (this.#hurried > 0 ? SECOND_LOOK_MS : LOOK_EVERY_MS)
    // The first position that nobody has taken.
    const { next } = this.#log.memory
    const unknown = new Set<number>()
    const lost: number[] = []
    for (let after = this.#floor - 1; ; ) {
      const found = await this.#log.readPositions(after, next, dueMs)
      for (const seq of found) {
        if (isKnown(seq)) continue
        if (this.#unknown.has(seq)) lost.push(seq)
        else unknown.add(seq)
      }
      if (found.length < PAGE_POSITIONS) break
      after = found.at(-1)!
    }
    this.#unknown = unknown
    this.#raiseFloor(nowMs, next)
    return lost
  }

  /** What the last look has found is in hand. */
  found(): void {
    if (this.#unknown.size === 0 || this.#hurried === 0) this.#isUncertain = false
  }

  #raiseFloor(nowMs: number, next: number): void {
    this.#marks.push({ atMs: nowMs, next })
    while (this.#marks.length > 1 && nowMs - this.#marks[1]!.atMs > COMMIT_MAX_MS) this.#marks.shift()
    const [oldest] = this.#marks
    if (nowMs - oldest!.atMs > COMMIT_MAX_MS && this.#unknown.size === 0) this.#floor = oldest!.next
  }
}

/** Positions of events that wait in the log, in their order, each once. */
export class PositionQueue {
  #positions = new Set<number>()

  get size(): number {
    return this.#positions.size
  }

  has(position: number): boolean {
    return this.#positions.has(position)
  }

  push(position: number): void {
    this.#positions.add(position)
  }

  /** Takes out the first ones. @param most how many */
  take(most: number): number[] {
    const taken: number[] = []
    for (const position of this.#positions) {
      if (taken.length === most) break
      this.#positions.delete(position)
      taken.push(position)
    }
    return taken
  }

  /** All, in their order. */
  list(): number[] {
    return [...this.#positions]
  }

  /** It does not wait any more. */
  drop(position: number): void {
    this.#positions.delete(position)
  }

  remove(positions: ReadonlySet<number>): void {
    for (const position of positions) this.#positions.delete(position)
  }

  /** Puts back what `take` has taken out. */
  putBack(positions: readonly number[]): void {
    this.#positions = new Set([...positions, ...this.#positions])
  }

  /** Adds positions, and puts all into the order of their numbers. */
  merge(positions: Iterable<number>): void {
    this.#positions = new Set([...this.#positions, ...positions].sort((a, b) => a - b))
  }

  /** Adds positions, each before the first greater one: what stands behind a greater one has waited for its time. @param positions in the order of their numbers */
  insert(positions: readonly number[]): void {
    const all: number[] = []
    let next = 0
    for (const position of this.#positions) {
      while (next < positions.length && positions[next]! < position) all.push(positions[next++]!)
      all.push(position)
    }
    this.#positions = new Set([...all, ...positions.slice(next)])
  }

  /** Puts those first that are named, in the order in which they are. */
  arrange(positions: readonly number[]): void {
    const known = positions.filter((position) => this.#positions.has(position))
    this.#positions = new Set([...known, ...this.#positions])
  }
}
