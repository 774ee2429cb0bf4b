/** By its path, somebody publishes an event. What that causes is to be seen. */
const PUBLISH = '/system/events/publish'

/** Routes of the runtime whose requests are kept only if they have failed: its own pages poll. @param route template of a path */
export const isOwnPage = (route: string): boolean => route.startsWith('/system/') && route !== PUBLISH

/** Values of the hash by which a sample is chosen. */
const HASHES = 2 ** 24
/** In a sample: works of one thread in one second that are kept although they have not failed. */
const KEPT_PER_SECOND = 100

/** In a sample: one run of each job in this time is kept, and each that takes so long. Milliseconds. */
const RUN_EVERY_MS = 10_000
const LONG_RUN_MS = 100

/**
 * Which work of a thread is kept: what failed, what was slow, and a sample. The sample is chosen by the id of the request, so that all
 * threads keep the parts of the same requests.
 */
export class Keep {
  /** Everything is kept. */
  readonly isAll: boolean
  readonly #bound: number
  readonly #slow = new SlowMarks()
  readonly #room = new Room(KEPT_PER_SECOND)
  readonly #kinds = new Map<string, number>()
  /** When a run of each job was last kept. */
  readonly #runs = new Map<string, number>()

  /** @param share of the requests that are kept although nothing is wrong with them, 0 to 1 */
  constructor(share: number) {
    this.isAll = share >= 1
    this.#bound = Math.floor(share * HASHES)
  }

  /** The number of a kind of work, for `keeps`. */
  kindOf(name: string): number {
    let kind = this.#kinds.get(name)
    if (kind === undefined) {
      kind = this.#kinds.size
      this.#kinds.set(name, kind)
    }
    return kind
  }

  /** Whether a run of a job that has not failed is kept, of which the sample may have none for days. */
  keepsRun(name: string, isAskedFor: boolean, ms: number, nowMs: number): boolean {
    const isKept = isAskedFor || ms >= LONG_RUN_MS || nowMs - (this.#runs.get(name) ?? -Infinity) >= RUN_EVERY_MS
    if (isKept) this.#runs.set(name, nowMs)
    return isKept
  }

  /** Whether work that has not failed is kept. @param id of its request, or of its event @param kind of work that takes about as long */
  keeps(id: string, kind: number, ms: number, nowMs: number): boolean {
    if (this.isAll) return true
    const isSlow = this.#slow.isAbove(kind, ms)
    // Under load the room is used up most of the time: then the id need not be read.
    return this.#room.isFree(nowMs) && (isSlow || numberOf(id) < this.#bound) && this.#room.take(nowMs)
  }
}

/** FNV-1a over the last characters. Source: RFC 9923. */
function numberOf(id: string): number {
  let hash = 0x811c9dc5
  for (let n = Math.max(0, id.length - 12); n < id.length; n++) hash = Math.imul(hash ^ id.charCodeAt(n), 0x01000193)
  return (hash >>> 0) % HASHES
}

/** Bounds how often something is done in a second. */
export class Room {
  readonly #perSecond: number
  #untilMs = 0
  #taken = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** False where it was done often enough in this second. */
  isFree(nowMs: number): boolean {
    if (nowMs >= this.#untilMs) {
      this.#untilMs = (Math.floor(nowMs / 1000) + 1) * 1000
      this.#taken = 0
    }
    return this.#taken < this.#perSecond
  }

  /** Takes one, where there is any. */
  take(nowMs: number): boolean {
    if (!this.isFree(nowMs)) return false
    this.#taken++
    return true
  }
}

/** Of durations, the share that is above the mark. */
const SHARE = 0.01
/** How far one duration moves the mark, as a part of it. */
const STEP = 0.05
const UP = 1 + STEP * (1 - SHARE)
const DOWN = 1 - STEP * SHARE
/** Marks for which there is room at first. */
const FIRST_MARKS = 64

/**
 * For each kind of work the duration that one in a hundred exceeds, found by small steps: up by much when one is above, down by little when
 * one is below, so that it stands still where a hundredth is above. Source: stochastic approximation of a quantile (Robbins and Monro, 1951).
 */
export class SlowMarks {
  #marks = new Float64Array(FIRST_MARKS)

  /** True for about one in a hundred durations of this kind: the longest ones. @param kind a number of the caller's, from 0 on */
  isAbove(kind: number, ms: number): boolean {
    if (kind >= this.#marks.length) this.#grow(kind)
    const mark = this.#marks[kind]!
    if (mark === 0) {
      this.#marks[kind] = ms
      return false
    }
    const isAbove = ms > mark
    this.#marks[kind] = mark * (isAbove ? UP : DOWN)
    return isAbove
  }

  #grow(kind: number): void {
    const marks = new Float64Array(2 * (kind + 1))
    marks.set(this.#marks)
    this.#marks = marks
  }
}
