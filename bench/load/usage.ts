import { machineCpuUs, mainThreadCpuUs, mainThreadWaitUs, treeCpuUs } from '../cpu.ts'

/** A reading of the CPU clocks. */
export interface Clocks {
  machineUs: number
  atMs: number
  ownCpuUs: number
  serverCpuUs: number | null
  serverMainUs: number | null
  ownWaitUs: number | null
  serverMainWaitUs: number | null
}

/** CPU time that was used between two readings. */
export interface Usage {
  elapsedMs: number
  /** CPU of this process, the generator, microseconds. */
  ownUs: number
  /** CPU of the observed process, its threads and what it has started, microseconds; null when none was named. */
  serverUs: number | null
  /** CPU of its main thread alone. */
  serverMainUs: number | null
  /** Cores that neither of the two used, but something else on the machine. */
  otherCores: number | null
  /** How long the main thread of this process was ready and had no core; null where the kernel does not tell. */
  ownWaitUs: number | null
  /** The same of the observed process; null when none was named. */
  serverMainWaitUs: number | null
}

export function readClocks(observedPid: number | undefined): Clocks {
  const own = process.cpuUsage()
  const ofServer = (read: (pid: number) => number | null) => (observedPid === undefined ? null : read(observedPid))
  return {
    machineUs: machineCpuUs(),
    serverCpuUs: ofServer(treeCpuUs),
    serverMainUs: ofServer(mainThreadCpuUs),
    ownCpuUs: own.user + own.system,
    ownWaitUs: mainThreadWaitUs(process.pid),
    serverMainWaitUs: ofServer(mainThreadWaitUs),
    atMs: performance.now(),
  }
}

export function usageBetween(start: Clocks, end: Clocks): Usage {
  const elapsedMs = end.atMs - start.atMs
  const ownUs = end.ownCpuUs - start.ownCpuUs
  const between = (from: number | null, to: number | null) => (from === null || to === null ? null : to - from)
  const serverUs = between(start.serverCpuUs, end.serverCpuUs)
  const serverMainUs = between(start.serverMainUs, end.serverMainUs)
  const otherCores =
    serverUs === null ? null : Math.max(0, (end.machineUs - start.machineUs - ownUs - serverUs) / 1000 / elapsedMs)
  const ownWaitUs = between(start.ownWaitUs, end.ownWaitUs)
  const serverMainWaitUs = between(start.serverMainWaitUs, end.serverMainWaitUs)
  return { elapsedMs, ownUs, serverUs, serverMainUs, otherCores, ownWaitUs, serverMainWaitUs }
}
