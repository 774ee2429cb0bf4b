import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const SOURCE = fileURLToPath(new URL('./synced-copies.c', import.meta.url))

/** A disk that keeps only what was synced. Its environment is for a process that is started; a SIGKILL of that process is the cut. */
export interface Disk {
  readonly env: Record<string, string>
  /** Folder with the files as the cut leaves them. */
  readonly left: string
}

/** @param folder of the files of which the disk keeps the synced state; @param work an empty folder beside it */
export async function diskOf(folder: string, work: string): Promise<Disk> {
  const library = join(work, 'synced-copies.so')
  const left = join(work, 'left')
  await mkdir(left)
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-O1', '-pthread', '-o', library, SOURCE, '-ldl'])
  return { left, env: { LD_PRELOAD: library, SYNCED_FROM: `${folder}/`, SYNCED_TO: left } }
}
