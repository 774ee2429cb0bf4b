import { readdirSync, readFileSync } from 'node:fs'

/** `USER_HZ`: the unit of /proc/<pid>/stat is 10 ms on every Linux that Node runs on. */
const MICROSECONDS_PER_TICK = 10_000
const KIB = 1024

/**
 * CPU time, user and system, that all threads of a process have used since it started, exited threads included.
 * Microseconds, in steps of 10,000: measure over seconds. Linux only.
 * @throws when there is no such process
 */
export function processCpuUs(pid: number): number {
  return cpuUsIn(`/proc/${pid}/stat`)
}

function cpuUsIn(file: string): number {
  const fields = statFields(file)
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK
}

/** Its second field is the command in parentheses, which may contain blanks, so fields are counted after the last parenthesis. */
function statFields(file: string): string[] {
  const stat = readFileSync(file, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** A process and all that it has started, whose processes have not ended. Linux only. */
export function processTree(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = parentOf(Number(name))
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const tree = [pid]
  for (const each of tree) tree.push(...(children.get(each) ?? []))
  return tree
}

/** Null when the process has ended meanwhile. */
function parentOf(pid: number): number | null {
  try {
    return Number(statFields(`/proc/${pid}/stat`)[1])
  } catch {
    return null
  }
}

/** CPU time of the main thread alone, microseconds. Linux only. @throws when there is no such process */
export const mainThreadCpuUs = (pid: number): number => cpuUsIn(`/proc/${pid}/task/${pid}/stat`)

/**
 * How long the main thread of a process has been ready to run without having a core, microseconds; null where the kernel does not tell.
 * Source: Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`, second field, nanoseconds.
 */
export function mainThreadWaitUs(pid: number): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1000
  } catch {
    return null
  }
}

/** CPU time of a process and all that it has started, microseconds. */
export const treeCpuUs = (pid: number): number => processTree(pid).reduce((sum, each) => sum + processCpuUs(each), 0)

/** Memory of a process and all that it has started, bytes: what several of them share counts once (`Pss`). Linux only. */
export function treeMemoryBytes(pid: number): number {
  return processTree(pid).reduce((sum, each) => {
    const line = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/smaps_rollup`, 'latin1'))
    return sum + Number(line?.[1] ?? 0) * KIB
  }, 0)
}

/**
 * CPU time that the whole machine has used since it started, including time that the hypervisor gave to other machines. Microseconds, in
 * steps of 10,000 per core. Linux only.
 */
export function machineCpuUs(): number {
  const line = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .trim()
    .split(/ +/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softirq + steal) * MICROSECONDS_PER_TICK
}

/** Resident memory of a process in bytes (`VmRSS`). Linux only. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
  if (!line) throw new Error(`process ${pid} has no VmRSS: it has ended`)
  return Number(line[1]) * KIB
}
