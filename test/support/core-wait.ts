import { readFileSync } from 'node:fs'

/** How long the main thread of a process has waited for a core so far, milliseconds; 0 where the system does not tell. On a busy machine that is most of what it takes to answer. */
export function coreWaitMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
