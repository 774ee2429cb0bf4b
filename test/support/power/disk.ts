import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Compiles one of the libraries of this folder. A process loads it with the variable LD_PRELOAD. */
async function compiled(name: string, folder: string): Promise<string> {
  const source = fileURLToPath(new URL(`./${name}.c`, import.meta.url))
  const library = join(folder, `${name}.so`)
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-O1', '-pthread', '-o', library, source, '-ldl'])
  return library
}

/** A disk that keeps only what was synced. Its environment is for a process that is started; a SIGKILL of that process is the cut. */
export interface Disk {
  readonly env: Record<string, string>
  /** Folder with the files as the cut leaves them. */
  readonly left: string
}

/** @param folder of the files of which the disk keeps the synced state; @param work an empty folder beside it */
export async function diskOf(folder: string, work: string): Promise<Disk> {
  const library = await compiled('synced-copies', work)
  const left = join(work, 'left')
  await mkdir(left)
  return { left, env: { LD_PRELOAD: library, SYNCED_FROM: `${folder}/`, SYNCED_TO: left } }
}

/** A disk that can be full. Its environment is for a process that is started. */
export interface FullDisk {
  readonly env: Record<string, string>
  fill(): Promise<void>
  /** Makes room. */
  empty(): Promise<void>
}

/** @param folder whose files are on the disk; @param work an empty folder beside it */
export async function fullDiskOf(folder: string, work: string): Promise<FullDisk> {
  const library = await compiled('full-disk', work)
  const mark = join(work, 'full')
  return {
    env: { LD_PRELOAD: library, FULL_FROM: `${folder}/`, FULL_MARK: mark },
    fill: () => writeFile(mark, ''),
    empty: () => rm(mark, { force: true }),
  }
}

/** A disk that can be mounted read-only. Its environment is for a process that is started. */
export interface ReadOnlyDisk {
  readonly env: Record<string, string>
  /** Also for files that are open. */
  mountReadOnly(): Promise<void>
  mountWritable(): Promise<void>
}

/** @param folder whose files are on the disk; @param work an empty folder beside it */
export async function readOnlyDiskOf(folder: string, work: string): Promise<ReadOnlyDisk> {
  const library = await compiled('read-only-disk', work)
  const mark = join(work, 'read-only')
  return {
    env: { LD_PRELOAD: library, READ_ONLY_FROM: `${folder}/`, READ_ONLY_MARK: mark },
    mountReadOnly: () => writeFile(mark, ''),
    mountWritable: () => rm(mark, { force: true }),
  }
}
