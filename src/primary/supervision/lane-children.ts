import { existsSync } from 'node:fs'

/** Groups of processes that the plugins of one lane have started. */
export class LaneChildren {
  /** By the process that leads the group. */
  readonly #groups = new Map<number, { plugin: string | null; isLed: boolean }>()

  started(pid: number, plugin: string | null): void {
    this.#groups.set(pid, { plugin, isLed: true })
  }

  list(): { pid: number; plugin: string | null }[] {
    return [...this.#groups].map(([pid, { plugin }]) => ({ pid, plugin }))
  }

  /** @param hasLeft others are in its group */
  ended(pid: number, hasLeft: boolean): void {
    const group = this.#groups.get(pid)
    if (hasLeft && group !== undefined) group.isLed = false
    else this.#groups.delete(pid)
  }

  /** The lane is gone. */
  end(): void {
    for (const [pid, { isLed }] of this.#groups) {
      // The group is empty by now, and its number another's.
      if (!isLed && existsSync(`/proc/${pid}`)) continue
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    }
    this.#groups.clear()
  }
}
