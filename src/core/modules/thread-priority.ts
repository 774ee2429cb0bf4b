import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

/** 0 to 19: higher is less urgent. */
const NICENESS = 10

/**
 * Gives this thread a lower priority than those that answer requests. On Linux each thread has its own, which is set by the thread's number;
 * elsewhere nothing changes.
 */
export const giveWay = (): void => setNiceness(NICENESS)

/** Gives this thread the normal priority again, where the process may: root, or who has the capability SYS_NICE. */
export const takePlace = (): void => setNiceness(0)

function setNiceness(niceness: number): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), niceness)
  } catch {
    // Not Linux, or not allowed: the thread keeps the priority that it has.
  }
}
