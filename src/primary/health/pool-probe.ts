// Whether libuv's thread pool serves, and who holds it.
import { randomFill } from 'node:crypto'
import { poolUses } from '../../runtime/kernel/pool-requests.ts'
import type { PoolUse } from '../../transport/messages.ts'
import type { Lanes } from '../dispatch/lane.ts'
import type { Log } from '../logging/process-log.ts'

/** How often the pool is tried, and the trial is looked after, milliseconds. */
const CHECK_MS = 500
/** One check adds at most this much: a pause of the primary or of the machine says nothing about the pool. */
const CHECK_MAX_MS = 2 * CHECK_MS
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
  #timer: NodeJS.Timeout | undefined
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
    this.#timer = setInterval(() => this.#check(), Math.min(CHECK_MS, this.#stallMs / 4)).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
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
    const elapsedMs = Math.min(nowMs - this.#checkedMs, CHECK_MAX_MS)
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
