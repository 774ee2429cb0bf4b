import { readFileSync } from 'node:fs'

/** `USER_HZ`: the unit of /proc/<pid>/stat is 10 ms on every Linux that Node runs on. */
const MICROSECONDS_PER_TICK = 10_000
const KIB = 1024

/**
 * CPU time, user and system, that all threads of a process have used since it started, exited threads included.
 * Microseconds, in steps of 10,000: measure over seconds. Linux only.
 * @throws when there is no such process
 */
export function processCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is the command in parentheses, which may contain blanks, so fields are counted after the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [userTicks, systemTicks] = [fields[11], fields[12]]
  return (Number(userTicks) + Number(systemTicks)) * MICROSECONDS_PER_TICK
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
