// The processes and threads that the plugins of a lane have started.
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { LaneInfo, Starter } from '../../contracts/registry.ts'
import { endTree, findTree, type ProcessTable, processTable } from '../../guardian/process-tree.cjs'

interface Leader {
  /** Its `startOf`. */
  start: number
  command: string
  startedMs: number
  starter: Starter
}

/** All that have something to end when this process does. */
const used = new Set<LaneChildren>()
process.once('exit', () => {
  for (const each of used) each.end()
})

/** Processes, with all that these have started, and threads that the plugins of one lane have started. Node ends the threads. */
export class LaneChildren {
  readonly #mark: string
  readonly #note: (pid: number, start: number | null) => void
  /** By the process that leads a group, or has led it. */
  readonly #leaders = new Map<number, Leader>()
  readonly #threads = new Map<number, Starter>()

  /**
   * @param mark value of `HEDDLE_RUN` in the environment of what is started in the lane
   * @param note keeps the leader of a group for the guardian, until its start is null
   */
  constructor(mark: string, note: (pid: number, start: number | null) => void) {
    this.#mark = mark
    this.#note = note
  }

  processStarted(pid: number, start: number, command: string, starter: Starter): void {
    this.#note(pid, start)
    this.#leaders.set(pid, { start, command: basename(command), startedMs: Date.now(), starter })
    this.mayLeave()
  }

  processEnded(pid: number): void {
    this.#note(pid, null)
    this.#leaders.delete(pid)
  }

  threadStarted(id: number, starter: Starter): void {
    this.#threads.set(id, starter)
    this.mayLeave()
  }

  threadEnded(id: number): void {
    this.#threads.delete(id)
  }

  /** Something may be left of the lane that nobody has told of. */
  mayLeave(): void {
    used.add(this)
  }

  get #all(): Parameters<typeof findTree>[0] {
    return { leaders: new Map([...this.#leaders].map(([pid, { start }]) => [pid, start])), mark: this.#mark }
  }

  list(): ({ pid: number } & Starter)[] {
    return [...this.#leaders].map(([pid, { starter }]) => ({ pid, ...starter }))
  }

  /** With all that lives of them. @param fileOf the file of a plugin */
  shown(fileOf: (plugin: string) => string | undefined): LaneInfo['child_processes'] {
    if (!used.has(this)) return []
    const table = processTable()
    const others = new Set(table === null ? [] : findTree(this.#all, table))
    const told = [...this.#leaders].flatMap(([pid, { start, command, startedMs, starter }]) => {
      const tree = findTree({ leaders: new Map([[pid, start]]), mark: null }, table)
      for (const each of tree) others.delete(each)
      if (tree.length === 0) return []
      const file = (starter.plugin !== null && fileOf(starter.plugin)) || null
      const descendants = table === null ? null : tree.filter((each) => each !== pid).length
      return { pid, ...starter, file, command, started_at: new Date(startedMs).toISOString(), descendants }
    })
    const roots = [...others].filter((pid) => !others.has(table!.get(pid)!.parent))
    return [...told, ...roots.map((pid) => untold(pid, table))]
  }

  threads(): LaneInfo['threads'] {
    const counts = new Map<string, LaneInfo['threads'][number]>()
    for (const starter of this.#threads.values()) {
      const key = JSON.stringify(starter)
      const seen = counts.get(key)
      if (seen === undefined) counts.set(key, { ...starter, count: 1 })
      else seen.count++
    }
    return [...counts.values()]
  }

  /**
   * The lane is given up, or gone.
   * @param task of its thread, while it stands: what it waits for (`execSync`) ends, too, and leads no group
   */
  end(task = 0): void {
    const awaited = task === 0 ? [] : childrenOf(task)
    if (awaited.length > 0 || used.delete(this) || hasChildren()) endTree(this.#all, awaited)
    for (const pid of this.#leaders.keys()) this.#note(pid, null)
    this.#leaders.clear()
  }
}

/** Nobody has told of it: a thread of a plugin has started it, an addon, or something that has ended. */
function untold(pid: number, table: ProcessTable): LaneInfo['child_processes'][number] {
  const descendants = findTree({ leaders: new Map([[pid, table!.get(pid)!.start]]), mark: null }, table).length - 1
  const command = textOf(`/proc/${pid}/comm`).trim() || null
  return { pid, plugin: null, handler: null, file: null, command, started_at: null, descendants }
}

/** What a thread of this process has started. Source: proc(5), /proc/pid/task/tid/children. */
const childrenOf = (task: number | string): number[] =>
  textOf(`/proc/self/task/${task}/children`).split(' ').filter(Boolean).map(Number)

function hasChildren(): boolean {
  try {
    return readdirSync('/proc/self/task').some((task) => childrenOf(task).length > 0)
  } catch {
    // Not Linux, or no descriptor is left to ask with.
    return false
  }
}

/** Empty where it is not Linux, and for what has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
