// Processes that get a small share of the cores.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Of the bandwidth control of both versions of control groups, microseconds. */
const PERIOD_US = 100_000
const V1 = '/sys/fs/cgroup/cpu'
const V2 = '/sys/fs/cgroup'
/** Neighbours end by themselves, whatever becomes of the test. */
const NEIGHBOURS_MAX_S = 120

/**
 * Lets processes starve: by a quota where this user may set one, else by neighbours with the weight of a session each.
 * @param share of a core that all of them get together
 * @returns puts a process, and what it starts from then on, among them
 */
export function starved(t: TestContext, share: number): { by: 'quota' | 'neighbours'; add(child: ChildProcess): void } {
  const tasks = quotaGroup(t, Math.round(share * PERIOD_US))
  if (tasks !== null) return { by: 'quota', add: ({ pid }) => writeFileSync(tasks, String(pid)) }
  const count = Math.ceil(availableParallelism() / share)
  const neighbours = Array.from({ length: count }, () =>
    spawn('timeout', [String(NEIGHBOURS_MAX_S), 'sh', '-c', 'while :; do :; done'], {
      detached: true,
      stdio: 'ignore',
    }),
  )
  t.after(() => {
    for (const { pid } of neighbours) process.kill(-pid!, 'SIGKILL')
  })
  return { by: 'neighbours', add: () => {} }
}

/** @returns the file that takes the numbers of processes; null where no group can be made */
function quotaGroup(t: TestContext, quotaUs: number): string | null {
  const name = `heddle-test-${process.pid}-${Math.random().toString(36).slice(2)}`
  const isFirst = existsSync(join(V1, 'cpu.cfs_quota_us'))
  const folder = join(isFirst ? V1 : V2, name)
  try {
    mkdirSync(folder)
  } catch {
    return null
  }
  t.after(() => leave(folder, isFirst ? V1 : V2))
  try {
    if (isFirst) writeFileSync(join(folder, 'cpu.cfs_quota_us'), String(quotaUs))
    else writeFileSync(join(folder, 'cpu.max'), `${quotaUs} ${PERIOD_US}`)
    return join(folder, 'cgroup.procs')
  } catch {
    // The controller is not given to children of the root.
    return null
  }
}

/** Only an empty group can be removed. */
function leave(folder: string, root: string): void {
  try {
    for (const pid of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
      writeFileSync(join(root, 'cgroup.procs'), pid)
    rmdirSync(folder)
  } catch {
    // A process of it has not quite ended: an empty group costs nothing.
  }
}
