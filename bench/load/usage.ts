import { machineCpuUs, mainThreadCpuUs, mainThreadWaitUs, treeCpuUs } from '../cpu.ts'

/** A reading of the CPU clocks, microseconds. */
export function readClocks(observedPid: number | undefined) {
  const own = process.cpuUsage()
  const ofServer = (read: (pid: number) => number | null) => (observedPid === undefined ? null : read(observedPid))
  return {
    machineUs: machineCpuUs(),
    /** CPU of the observed process, its threads and what it has started; null when none was named. */
    serverUs: ofServer(treeCpuUs),
    /** CPU of its main thread alone. */
    serverMainUs: ofServer(mainThreadCpuUs),
    /** CPU of this process, the generator. */
    ownUs: own.user + own.system,
    /** How long the main thread of this process was ready and had no core; null where the kernel does not tell. */
    ownWaitUs: mainThreadWaitUs(process.pid),
    /** The same of the observed process; null when none was named. */
    serverMainWaitUs: ofServer(mainThreadWaitUs),
    atMs: performance.now(),
  }
}

/** Or what went by on the clocks between two readings. */
export type Clocks = ReturnType<typeof readClocks>

/** @returns with the cores that neither of the two processes used, but something else on the machine */
export function usageBetween(start: Clocks, end: Clocks): Clocks & { otherCores: number | null } {
  const since = Object.entries(end).map(([clock, to]: [string, number | null]) => {
    const from = start[clock as keyof Clocks]
    return [clock, from === null || to === null ? null : to - from]
  })
  const usage: Clocks = Object.fromEntries(since)
  const { atMs: elapsedMs, machineUs, ownUs, serverUs } = usage
  const otherCores = serverUs === null ? null : Math.max(0, (machineUs - ownUs - serverUs) / 1000 / elapsedMs)
  return { ...usage, otherCores }
}
