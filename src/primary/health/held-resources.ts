// What the threads of a process share and may use up, descriptors and libuv's thread pool: whether some is left, and who holds it.
import { randomFill } from 'node:crypto'
import { poolUses } from '../../runtime/kernel/pool-requests.ts'
import type { Holder, PoolUse } from '../../transport/messages.ts'
import type { Lane, Lanes } from '../dispatch/lane.ts'
import { type ConnectionLimit, isCountCheap } from '../http/connection-limit.ts'
import type { Log } from '../logging/process-log.ts'

/** How often it is looked how many descriptors are left, milliseconds: seldom where that reads a list of them all. */
const DESCRIPTORS_CHECK_MS = isCountCheap() ? 250 : 1000
/** Lanes that have not answered by then who holds them are busy, milliseconds. */
const ANSWER_MS = 100
/** Few are left when all but connections take more than this share of them. */
const FEW_SHARE = 0.8
/** A lane is ended when one handler has opened this share of all there, and not closed it. */
const HELD_SHARE = 0.25

/** Looks whether the process has descriptors left (`ulimit -n`). Where few are, it finds out who holds them, and ends that lane. */
export class Descriptors {
  readonly #connections: ConnectionLimit
  readonly #lanes: Pick<Lanes, 'all'>
  readonly #log: Log
  readonly #end: (lane: Lane, holder: Holder) => void
  /** Which handlers have files open, as lanes have answered since they were asked last. */
  readonly #holders = new Map<Lane, readonly Holder[]>()
  #ending: Lane | null = null
  #isTold = false
  /** Why hardly a descriptor is left; null while some are. */
  fault: string | null = null

  /** @param end ends a lane, and with it the files that are open in it */
  constructor(
    connections: ConnectionLimit,
    lanes: Pick<Lanes, 'all'>,
    log: Log,
    end: (lane: Lane, holder: Holder) => void,
  ) {
    this.#connections = connections
    this.#lanes = lanes
    this.#log = log
    this.#end = end
  }

  start(): void {
    setInterval(() => this.#check(), DESCRIPTORS_CHECK_MS).unref()
  }

  report(lane: Lane, holders: readonly Holder[]): void {
    this.#holders.set(lane, holders)
  }

  #check(): void {
    const { used, limit } = this.#connections.descriptors()
    if (used - this.#connections.open < FEW_SHARE * limit) {
      if (this.#isTold) this.#log('INFO', `Descriptors are left again: ${used} of ${limit} are used`, 'main')
      this.fault = null
      this.#isTold = false
      return
    }
    this.fault ??= `${used} of ${limit} descriptors are used (ulimit -n)`
    this.#holders.clear()
    for (const lane of this.#lanes.all) lane.post({ type: 'open-files' })
    setTimeout(() => this.#tellOf(used, limit), ANSWER_MS).unref()
  }

  #tellOf(used: number, limit: number): void {
    const all = [...this.#holders].flatMap(([lane, holders]) => holders.map((holder) => ({ lane, holder })))
    const [worst] = all.sort((a, b) => b.holder.files - a.holder.files)
    if (worst !== undefined) {
      const { plugin, handler, files } = worst.holder
      this.fault = `${used} of ${limit} descriptors are used (ulimit -n), ${files} of them by files that ${plugin} has opened in ${handler} and not closed`
    }
    if (!this.#isTold) this.#log('ERROR', `Not ready: ${this.fault}`, 'main')
    this.#isTold = true
    if (worst === undefined || worst.holder.files < HELD_SHARE * limit) return
    if (this.#ending !== null && this.#lanes.all.includes(this.#ending)) return
    this.#ending = worst.lane
    this.#end(worst.lane, worst.holder)
  }
}

/** How often the pool is tried, and the trial is looked after, milliseconds. */
const POOL_CHECK_MS = 500
/** One check adds at most this much: a pause of the primary or of the machine says nothing about the pool. */
const POOL_CHECK_MAX_MS = 2 * POOL_CHECK_MS
/** Handlers that a reason names. */
const NAMED_MAX = 3

/**
 * Tries libuv's thread pool, which all threads share: it is held when an operation that needs no disk does not return. Then files, DNS, tokens
 * and SQLite's syncs wait in every lane, and handlers that need none of them go on.
 */
export class PoolProbe {
  readonly #stallMs: number
  readonly #lanes: Pick<Lanes, 'all'>
  readonly #log: Log
  readonly #bytes = Buffer.alloc(1)
  #checkedMs = 0
  #isWaiting = false
  /** How long the present trial has waited. */
  #waitedMs = 0
  /** The threads were asked who holds the pool. */
  #isAsked = false
  /** It was said that the pool is held. */
  #isTold = false
  /** By thread: an answer replaces the earlier one of that thread. */
  readonly #uses = new Map<string, PoolUse[]>()

  /** @param stallMs the pool counts as held when the trial waits longer */
  constructor(stallMs: number, lanes: Pick<Lanes, 'all'>, log: Log) {
    this.#stallMs = stallMs
    this.#lanes = lanes
    this.#log = log
  }

  start(): void {
    this.#checkedMs = performance.now()
    setInterval(() => this.#check(), Math.min(POOL_CHECK_MS, this.#stallMs / 4)).unref()
  }

  /** What a thread has under way in the pool. */
  report(thread: string, uses: PoolUse[]): void {
    if (this.#isAsked) this.#uses.set(thread, uses)
  }

  /** Why the pool does not serve; null while it does. */
  get fault(): string | null {
    if (this.#waitedMs < this.#stallMs) return null
    const calls = new Map<string, number>()
    for (const use of [...this.#uses.values()].flat()) {
      const name = `${use.plugin} (${use.handler}`
      calls.set(name, (calls.get(name) ?? 0) + use.calls)
    }
    const most = [...calls].sort(([, a], [, b]) => b - a).slice(0, NAMED_MAX)
    const names = most.map(([name, count]) => `${name}, ${count} calls)`)
    const by = names.length === 0 ? 'calls of which no handler is known' : names.join(', ')
    return `the thread pool (files, DNS, tokens) has been held for ${Math.round(this.#waitedMs / 1000)} s by ${by}`
  }

  #check(): void {
    const nowMs = performance.now()
    const elapsedMs = Math.min(nowMs - this.#checkedMs, POOL_CHECK_MAX_MS)
    this.#checkedMs = nowMs
    if (!this.#isWaiting) return this.#try()
    this.#waitedMs += elapsedMs
    // Early enough for the answers to be there when it is said.
    if (!this.#isAsked && this.#waitedMs >= this.#stallMs / 2) this.#ask()
    else if (!this.#isTold && this.#waitedMs >= this.#stallMs) {
      this.#isTold = true
      this.#log('ERROR', `Not ready: ${this.fault}`, 'main')
    }
  }

  /** Each thread reports what it has under way there. */
  #ask(): void {
    this.#isAsked = true
    this.report('primary', poolUses())
    for (const lane of this.#lanes.all) lane.post({ type: 'pool-uses' })
  }

  #try(): void {
    this.#isWaiting = true
    randomFill(this.#bytes, () => {
      const heldMs = this.#waitedMs
      const wasTold = this.#isTold
      this.#isWaiting = false
      this.#waitedMs = 0
      this.#isAsked = false
      this.#isTold = false
      this.#uses.clear()
      if (wasTold) this.#log('INFO', `The thread pool serves again, after ${Math.round(heldMs)} ms`, 'main')
    })
  }
}
