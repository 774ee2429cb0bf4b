import { ChildProcess } from 'node:child_process'
import { causality } from '../core/causality/context.ts'
import type { ToPrimary } from '../transport/messages.ts'

interface Spawning {
  spawn(options: { envPairs?: string[] }): unknown
}

const kill = process.kill.bind(process)

/**
 * Tells the primary of each process that plugins start, so that it ends with its lane: nobody else would end it. It leads a group of its own, in which
 * everything is that it starts itself.
 * @param run the mark by which the guardian finds it, when this process is gone at once; undefined without a guardian
 */
export function watchChildProcesses(post: (message: ToPrimary) => void, run: string | undefined): void {
  // There are no groups.
  if (process.platform === 'win32') return
  const prototype = ChildProcess.prototype as unknown as Spawning
  const { spawn } = prototype
  const mark = run === undefined ? [] : [`HEDDLE_RUN=${run}`]
  prototype.spawn = function (this: ChildProcess, options) {
    // One that gets an environment of its own would be without.
    const envPairs = [...(options.envPairs ?? []), ...mark]
    const outcome = spawn.call(this as unknown as Spawning, { ...options, envPairs, detached: true } as typeof options)
    const { pid } = this
    if (pid === undefined) return outcome
    const { plugin = null, handler = null } = causality.getStore()?.origin ?? {}
    post({ type: 'child-started', pid, starter: { plugin, handler } })
    this.once('exit', () => post({ type: 'child-ended', pid, hasLeft: isGroup(pid) }))
    return outcome
  }
}

/** True when something is left in the group of a process that has ended. */
function isGroup(pid: number): boolean {
  try {
    return kill(-pid, 0)
  } catch {
    return false
  }
}
