import type { CoreShare, HeartbeatReader } from '../../transport/memory/heartbeat.ts'
import { Starvation } from './starvation.ts'

/** Threads that get this share of the cores that they want hold up nobody for long who waits for them. */
const ENOUGH_SHARE = 0.2

/** One for all lanes: they share the cores. */
const starvation = new Starvation()

/**
 * How long a lane has stood still by its own doing: at work, or waiting inside of a call. What others had the cores for does not count: a thread that is
 * starved is not stuck, and none that would come in its place fares better.
 */
export class OwnTime {
  readonly #heartbeat: HeartbeatReader
  #ms = 0
  #first: CoreShare | null = null
  #last: CoreShare | null = null

  constructor(heartbeat: HeartbeatReader) {
    this.#heartbeat = heartbeat
  }

  get ms(): number {
    return this.#ms
  }

  /** CPU time of the thread since it stands still; null when it does not, or the system does not tell. */
  get cpuMs(): number | null {
    const { cpuMs } = this.#heartbeat
    return this.#first === null || cpuMs === null ? null : cpuMs - this.#first.cpuMs
  }

  /** Time has passed in which it stood still. */
  pass(passedMs: number): void {
    const before = this.#last
    const now = this.#heartbeat.share()
    this.#last = now
    this.#first ??= now
    if (now === null) this.#ms += passedMs
    else if (before !== null) this.#ms += Math.min(passedMs, ownMs(before, now, passedMs))
  }

  /** A debugger holds it. */
  limit(ms: number): void {
    this.#ms = Math.min(this.#ms, ms)
  }

  /** It goes on. */
  reset(): void {
    this.#ms = 0
    this.#first = null
    this.#last = null
  }
}

function ownMs(before: CoreShare, now: CoreShare, passedMs: number): number {
  const usedMs = now.cpuMs - before.cpuMs
  if (now.isRunnable) return usedMs
  // What it waits for may be held by a thread that waits for a core.
  const sleptMs = Math.max(0, passedMs - usedMs - (now.waitedMs - before.waitedMs))
  return usedMs + sleptMs * Math.min(1, (starvation.share() ?? 0) / ENOUGH_SHARE)
}
