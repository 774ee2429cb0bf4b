import { machineCpuUs, processCpuUs } from '../cpu.ts'

/** A reading of the CPU clocks. */
export interface Clocks {
  machineUs: number
  atMs: number
  ownCpuUs: number
  serverCpuUs: number | null
}

/** CPU time that was used between two readings. */
export interface Usage {
  elapsedMs: number
  /** CPU of this process, the generator, microseconds. */
  ownUs: number
  /** CPU of the observed process, all threads, microseconds; null when none was named. */
  serverUs: number | null
  /** Cores that neither of the two used, but something else on the machine. */
  otherCores: number | null
}

export function readClocks(observedPid: number | undefined): Clocks {
  const own = process.cpuUsage()
  return {
    machineUs: machineCpuUs(),
    serverCpuUs: observedPid === undefined ? null : processCpuUs(observedPid),
    ownCpuUs: own.user + own.system,
    atMs: performance.now(),
  }
}

export function usageBetween(start: Clocks, end: Clocks): Usage {
  const elapsedMs = end.atMs - start.atMs
  const ownUs = end.ownCpuUs - start.ownCpuUs
  const serverUs = start.serverCpuUs === null || end.serverCpuUs === null ? null : end.serverCpuUs - start.serverCpuUs
  const otherCores =
    serverUs === null ? null : Math.max(0, (end.machineUs - start.machineUs - ownUs - serverUs) / 1000 / elapsedMs)
  return { elapsedMs, ownUs, serverUs, otherCores }
}
