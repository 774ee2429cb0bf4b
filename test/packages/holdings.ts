import { readdirSync } from 'node:fs'
import { processTree } from '../support/servers/process-tree.ts'

/** What a process has of the system. */
export interface Holdings {
  threads: number
  /** Its processes, with those that they have started. */
  children: number
  descriptors: number
  /** In its folder for temporary files. */
  files: number
}

export const KINDS = ['threads', 'children', 'descriptors', 'files'] as const satisfies (keyof Holdings)[]

/** Of a process of Linux. @param temporary its `TMPDIR` */
export function holdingsOf(pid: number, temporary: string): Holdings {
  return {
    threads: readdirSync(`/proc/${pid}/task`).length,
    children: processTree(pid).length - 1,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    files: readdirSync(temporary).length,
  }
}
