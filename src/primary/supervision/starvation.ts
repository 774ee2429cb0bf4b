import { readdirSync, readFileSync } from 'node:fs'
import { steadyMs } from '../../core/schedule/steady-time.ts'

/** The process is looked at no more often than this, milliseconds. Each look reads a file per thread. */
const LOOK_MS = 100
/** What was seen longer ago says nothing about now, milliseconds. */
const RECENT_MS = 1000
/** The least share that is told: something that waits inside of a call is found at last, too. */
const LEAST_SHARE = 0.02

const TASKS = '/proc/self/task'

interface Times {
  usedMs: number
  waitedMs: number
}

/**
 * How much of the cores that the threads of this process want they get: 1 where none of them waits for one. Whoever waits for a thread that is
 * starved waits as many times longer: for a lock, or for a helper of V8.
 */
export class Starvation {
  #times = new Map<string, Times>()
  #lookedMs = Number.NEGATIVE_INFINITY
  #share: number | null = null

  /** Null until it has been looked at for LOOK_MS; ask again. */
  share(): number | null {
    const nowMs = steadyMs()
    const passedMs = nowMs - this.#lookedMs
    if (passedMs < LOOK_MS) return this.#share
    const before = this.#times
    this.#times = timesOfThreads()
    this.#lookedMs = nowMs
    this.#share = passedMs > RECENT_MS ? null : this.#shareSince(before, passedMs)
    return this.#share
  }

  #shareSince(before: ReadonlyMap<string, Times>, passedMs: number): number {
    let usedMs = 0
    let waitedMs = 0
    for (const [task, now] of this.#times) {
      const then = before.get(task) ?? { usedMs: 0, waitedMs: 0 }
      const used = now.usedMs - then.usedMs
      // A wait is counted when it is over.
      const waited = now.waitedMs - then.waitedMs || (used === 0 && isRunnable(task) ? passedMs : 0)
      usedMs += used
      waitedMs += Math.min(waited, passedMs)
    }
    const share = usedMs + waitedMs === 0 ? 1 : Math.max(LEAST_SHARE, usedMs / (usedMs + waitedMs))
    // What threads have waited that are gone is not known.
    const isSomeGone = [...before.keys()].some((task) => !this.#times.has(task))
    return isSomeGone ? Math.min(share, this.#share ?? 1) : share
  }
}

/** Of all threads that there are. Empty where the system does not tell. */
export function timesOfThreads(): Map<string, Times> {
  const times = new Map<string, Times>()
  try {
    for (const task of readdirSync(TASKS)) {
      // Source: Documentation/scheduler/sched-stats.rst, nanoseconds.
      const [used, waited] = readOf(task, 'schedstat')?.split(' ') ?? []
      if (used !== undefined) times.set(task, { usedMs: Number(used) / 1e6, waitedMs: Number(waited) / 1e6 })
    }
  } catch {
    // Not Linux, or no descriptor is left to ask with.
  }
  return times
}

function isRunnable(task: string): boolean {
  return readOf(task, 'stat')?.split(') ').at(-1)?.startsWith('R') === true
}

/** Null for a thread that has just ended. */
function readOf(task: string, file: string): string | null {
  try {
    return readFileSync(`${TASKS}/${task}/${file}`, 'latin1')
  } catch {
    return null
  }
}
