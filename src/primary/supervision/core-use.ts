import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { LaneThread } from './lane-thread.ts'
import { timesOfThreads } from './starvation.ts'

/** How often it is looked who uses the cores, milliseconds; only while a plugin has started something. */
const LOOK_MS = 5000
/** It is said once in this time, milliseconds. */
const TOLD_EVERY_MS = 60_000
/** Of what the process and its children use, and of the cores: less is nobody's trouble. */
const SHARE_OF_PROCESS = 0.5
const SHARE_OF_CORES = 0.1
const MS_PER_TICK = 10

/** Says when the cores go to threads and processes that plugins have started. Knows nothing where the system does not tell. */
export class CoreUse {
  readonly #threads: () => readonly LaneThread[]
  readonly #say: (message: string) => void
  /** Threads of the runtime from before the first lane: those of V8 and of libuv. */
  readonly #ownTasks = new Set(timesOfThreads().keys())
  #used = new Map<string, number>()
  #lookedMs = Number.NEGATIVE_INFINITY
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(threads: () => readonly LaneThread[], say: (message: string) => void) {
    this.#threads = threads
    this.#say = say
  }

  look(nowMs = steadyMs()): void {
    const passedMs = nowMs - this.#lookedMs
    if (passedMs < LOOK_MS) return
    this.#lookedMs = nowMs
    const before = this.#used
    const lanes = this.#threads()
    const starters = startersOf(lanes)
    this.#used = starters.size === 0 ? new Map() : timesUsed(lanes)
    if (before.size === 0 || starters.size === 0 || nowMs - this.#toldMs < TOLD_EVERY_MS) return
    const laneTasks = new Set(lanes.map(({ lane }) => String(lane.heartbeat.task)))
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

/** How many threads and processes each handler has started that have not ended. */
function startersOf(lanes: readonly LaneThread[]): Map<string, number> {
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
function timesUsed(lanes: readonly LaneThread[]): Map<string, number> {
  const used = new Map([...timesOfThreads()].map(([task, { usedMs }]) => [task, usedMs]))
  for (const { children } of lanes) {
    for (const { pid } of children.list()) used.set(`process ${pid}`, cpuMsOf(pid))
  }
  return used
}

/** With that of its own children that have ended. Source: proc(5), /proc/pid/stat, fields utime to cstime. */
function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ')
    return fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) * MS_PER_TICK
  } catch {
    return 0
  }
}

/** What is done there was asked for by handlers, and is the process's own work. */
function isOfPool(task: string): boolean {
  try {
    return readFileSync(`/proc/self/task/${task}/comm`, 'latin1').startsWith('libuv')
  } catch {
    return false
  }
}
