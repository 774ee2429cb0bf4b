// How much of its time a thread had a core.
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { CoreShare, HeartbeatReader } from '../../transport/memory/heartbeat.ts'
import type { LaneChildren } from './lane-children.ts'

/** The process is looked at no more often than this, milliseconds. Each look reads a file per thread. */
const LOOK_MS = 100
/** What was seen longer ago says nothing about now, milliseconds. */
const RECENT_MS = 1000
/** The least share that is told: something that waits inside of a call is found at last, too. */
const LEAST_SHARE = 0.02

/** A thread's own files. Source: proc(5). */
const TASKS = '/proc/self/task'

interface Times {
  usedMs: number
  waitedMs: number
}

/**
 * How much of the cores that the threads of this process want they get: 1 where none of them waits for one. Whoever waits for a thread that is
 * starved waits as many times longer: for a lock, or for a helper of V8.
 */
class Starvation {
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
function timesOfThreads(): Map<string, Times> {
  const times = new Map<string, Times>()
  try {
    for (const task of readdirSync(TASKS)) {
      // Source: Documentation/scheduler/sched-stats.rst, nanoseconds.
      const [used, waited] = textOf(`${TASKS}/${task}/schedstat`)?.split(' ') ?? []
      if (used !== undefined) times.set(task, { usedMs: Number(used) / 1e6, waitedMs: Number(waited) / 1e6 })
    }
  } catch {
    // Not Linux, or no descriptor is left to ask with.
  }
  return times
}

function isRunnable(task: string): boolean {
  return textOf(`${TASKS}/${task}/stat`)?.split(') ').at(-1)?.startsWith('R') === true
}

/** Null for a thread or process that has just ended. */
function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return null
  }
}

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
  ms = 0
  #first: CoreShare | null = null
  #last: CoreShare | null = null

  constructor(heartbeat: HeartbeatReader) {
    this.#heartbeat = heartbeat
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
    if (now === null) this.ms += passedMs
    else if (before !== null) this.ms += Math.min(passedMs, ownMs(before, now, passedMs))
  }

  /** A debugger holds it. */
  limit(ms: number): void {
    this.ms = Math.min(this.ms, ms)
  }

  /** It goes on. */
  reset(): void {
    this.ms = 0
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

/** How often it is looked who uses the cores, milliseconds; only while a plugin has started something. */
const USE_LOOK_MS = 5000
/** It is said once in this time, milliseconds. */
const TOLD_EVERY_MS = 60_000
/** Of what the process and its children use, and of the cores: less is nobody's trouble. */
const SHARE_OF_PROCESS = 0.5
const SHARE_OF_CORES = 0.1
const MS_PER_TICK = 10

/** Says when the cores go to threads and processes that plugins have started. Knows nothing where the system does not tell. */
export class CoreUse {
  readonly #threads: () => readonly StartingLane[]
  readonly #say: (message: string) => void
  /** Threads of the runtime from before the first lane: those of V8 and of libuv. */
  readonly #ownTasks = new Set(timesOfThreads().keys())
  #used = new Map<string, number>()
  #lookedMs = Number.NEGATIVE_INFINITY
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(threads: () => readonly StartingLane[], say: (message: string) => void) {
    this.#threads = threads
    this.#say = say
  }

  look(nowMs = steadyMs()): void {
    const passedMs = nowMs - this.#lookedMs
    if (passedMs < USE_LOOK_MS) return
    this.#lookedMs = nowMs
    const before = this.#used
    const lanes = this.#threads()
    const starters = startersOf(lanes)
    this.#used = starters.size === 0 ? new Map() : timesUsed(lanes)
    if (before.size === 0 || starters.size === 0 || nowMs - this.#toldMs < TOLD_EVERY_MS) return
    const laneTasks = new Set(lanes.map(({ heartbeat }) => String(heartbeat.task)))
    let allMs = 0
    let theirsMs = 0
    for (const [task, usedMs] of this.#used) {
      const ms = usedMs - (before.get(task) ?? 0)
      allMs += ms
      if (!this.#ownTasks.has(task) && !laneTasks.has(task) && !isOfPool(task)) theirsMs += ms
    }
    const cores = availableParallelism()
    if (theirsMs < SHARE_OF_PROCESS * allMs || theirsMs < SHARE_OF_CORES * cores * passedMs) return
    this.#toldMs = nowMs
    const whose = [...starters].sort(([, a], [, b]) => b - a).map(([starter, count]) => `${starter}: ${count}`)
    this.#say(
      `Threads and processes that plugins have started use ${(theirsMs / passedMs).toFixed(1)} of ${cores} cores (${whose.join(', ')})`,
    )
  }
}

/** A lane, by what its plugins have started. */
interface StartingLane {
  readonly heartbeat: { readonly task: number }
  readonly children: LaneChildren
}

/** How many threads and processes each handler has started that have not ended. */
function startersOf(lanes: readonly StartingLane[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { children } of lanes) {
    const processes = children.list().map((each) => ({ ...each, count: 1 }))
    for (const { plugin, handler, count } of [...processes, ...children.threads()]) {
      const name = `${plugin ?? 'unknown'}${handler === null ? '' : `, ${handler}`}`
      counts.set(name, (counts.get(name) ?? 0) + count)
    }
  }
  return counts
}

/** CPU time of each thread of the process, and of each process that plugins have started, milliseconds. */
function timesUsed(lanes: readonly StartingLane[]): Map<string, number> {
  const used = new Map([...timesOfThreads()].map(([task, { usedMs }]) => [task, usedMs]))
  for (const { children } of lanes) {
    for (const { pid } of children.list()) used.set(`process ${pid}`, cpuMsOf(pid))
  }
  return used
}

/** With that of its own children that have ended. Source: proc(5), /proc/pid/stat, fields utime to cstime. */
function cpuMsOf(pid: number): number {
  const fields = (textOf(`/proc/${pid}/stat`) ?? '').split(') ').at(-1)!.split(' ')
  return fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) * MS_PER_TICK
}

/** What is done there was asked for by handlers, and is the process's own work. */
const isOfPool = (task: string): boolean => textOf(`${TASKS}/${task}/comm`)?.startsWith('libuv') === true
