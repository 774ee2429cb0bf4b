/** What the system says of a thread. */
export interface ThreadTimes {
  /** As proc(5) has it: R runs or waits for a core, S sleeps, D waits for a disk, T is stopped. */
  readonly state: string
  /** CPU time since it began. */
  readonly cpuMs: number
  /** Time for which it has waited for a core since it began. A wait is counted when it is over. */
  readonly waitedMs: number
  /** How often its pages had to be read from a disk. */
  readonly pageReads: number
}

/** Counts one thread's own time: wall time minus the time for which it waited for a core. */
export declare class ThreadClock {
  /** Own time since the last `reset`, milliseconds. */
  readonly ms: number
  /** CPU time since then; null where the system does not say. */
  readonly cpuMs: number | null
  /** @param times reads the thread, as `timesOf` does; null where that is not possible */
  constructor(times: () => ThreadTimes | null)
  /**
   * @param passedMs for which the watcher was awake
   * @returns how much of it was the thread's own
   */
  pass(passedMs: number): number
  reset(): void
}

/** Tells a watcher for how long it was awake. */
export declare class Watcher {
  /** Since the tick before, milliseconds, however long ago that was. */
  readonly elapsedMs: number
  /** How much of that counts: time in which the watcher waited for a core itself, or was stopped, says nothing about others. */
  readonly awakeMs: number
  /** @param maxMs one tick adds at most this much */
  constructor(maxMs: number)
  tick(): void
}

/** @returns folder of the process's threads; null where `/proc` is missing or shows the numbers of another namespace */
export declare function tasksOf(pid: number | 'self'): string | null
/** @returns null when the thread has ended, and where the system does not say */
export declare function timesOf(folder: string): ThreadTimes | null
/** @returns the system's number of this thread; 0 where it has none */
export declare function ownTask(): number
/** @returns all threads of a process, of this one by default, by number; empty where the system does not say */
export declare function timesOfThreads(pid?: number): Map<number, ThreadTimes>
/** @returns several threads as one that runs while any of them does; null for none */
export declare function together(threads: Iterable<ThreadTimes>): ThreadTimes | null
/** @returns how long this thread has waited for a core since it began, milliseconds; 0 where the system does not say */
export declare function waitedHereMs(): number
