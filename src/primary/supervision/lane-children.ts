// The processes and threads that the plugins of a lane have started.
import { existsSync, readFileSync } from 'node:fs'
import type { LaneInfo, Starter } from '../../contracts/registry.ts'

/** Groups of processes, and threads, that the plugins of one lane have started. Node ends the threads. */
export class LaneChildren {
  /** By the process that leads the group. */
  readonly #groups = new Map<number, { starter: Starter; isLed: boolean }>()
  readonly #threads = new Map<number, Starter>()

  started(what: 'process' | 'thread', id: number, starter: Starter): void {
    if (what === 'thread') this.#threads.set(id, starter)
    else this.#groups.set(id, { starter, isLed: true })
  }

  /** @param hasLeft others are in its group */
  ended(what: 'process' | 'thread', id: number, hasLeft: boolean): void {
    const group = this.#groups.get(id)
    if (what === 'thread') this.#threads.delete(id)
    else if (hasLeft && group !== undefined) group.isLed = false
    else this.#groups.delete(id)
  }

  list(): LaneInfo['child_processes'] {
    return [...this.#groups].map(([pid, { starter }]) => ({ pid, ...starter }))
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
    if (task !== 0) for (const pid of descendantsOf(`self/task/${task}`)) end(pid)
    for (const [pid, { isLed }] of this.#groups) {
      // The group is empty by now, and its number another's.
      if (!isLed && existsSync(`/proc/${pid}`)) continue
      end(-pid)
    }
    this.#groups.clear()
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** All that a thread has started, and what that has. Source: proc(5), /proc/pid/task/tid/children. */
function descendantsOf(task: string): number[] {
  try {
    const children = readFileSync(`/proc/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number)
    return children.flatMap((pid) => [pid, ...descendantsOf(`${pid}/task/${pid}`)])
  } catch {
    // Not Linux, or it has ended.
    return []
  }
}
