import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** A process and all that descend from it, parents first. PostgreSQL puts each of its children in a group of its own: signalling a group misses them. */
export function processTree(rootPid: number): number[] {
  const parents = parentPids()
  const tree = [rootPid]
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child)
  return tree
}

/** Sends a signal to each that is still there. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // Gone already.
    }
  }
}

/** Whether a process runs. One that has ended and waits for its parent to ask for its exit code does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return process.platform !== 'linux' || statOf(pid) !== undefined
}

/** Resolves with whether all have ended in time. */
export async function haveEnded(pids: readonly number[], withinMs: number): Promise<boolean> {
  const deadlineMs = Date.now() + withinMs
  while (pids.some(isRunning)) {
    if (Date.now() > deadlineMs) return false
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return true
}

function parentPids(): Map<number, number> {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    return new Map(lines.map((line) => line.trim().split(/\s+/).map(Number) as [number, number]))
  }
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = statOf(Number(name))
    if (parent !== undefined) parents.set(Number(name), parent)
  }
  return parents
}

/** The parent of a process of Linux; undefined when it has ended. */
function statOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold blanks and parentheses itself.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? undefined : Number(parent)
  } catch {
    return undefined
  }
}
