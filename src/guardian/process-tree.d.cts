export interface Processes {
  /** Those that lead a group and a session of their own, each with its `startOf`. */
  leaders: ReadonlyMap<number, number>
  /** Value of `HEDDLE_RUN` in the environment that they were started with; null when only the leaders are wanted. */
  mark: string | null
}

export interface ProcessStat {
  /** False for one that has ended, of which its parent does not know. */
  isLiving: boolean
  parent: number
  group: number
  session: number
  start: number
}

export type ProcessTable = ReadonlyMap<number, ProcessStat> | null

/** All processes; null where it is not Linux. */
export declare function processTable(): ProcessTable
/** When a process has begun, which no other one of this number has; 0 where that is not known. */
export declare function startOf(pid: number): number
/**
 * The processes that live, with all that they have started. Elsewhere than on Linux these are the groups of the leaders, each as the negative
 * number by which it gets signals.
 */
export declare function findTree(of: Processes, table?: ProcessTable): number[]
/** Ends all of them. @param more processes that end with all that they have started, too */
export declare function endTree(of: Processes, more?: readonly number[]): void
/** @returns false when it has ended by itself */
export declare function signal(pid: number, name: NodeJS.Signals | 0): boolean
