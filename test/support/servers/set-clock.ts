import { execFile } from 'node:child_process'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from '../folder.ts'
import { programFor, type ServerOwner } from './provide.ts'

const run = promisify(execFile)

/** The clock of processes, which can be set while they run. */
export interface SetClock {
  /** For the processes. */
  readonly env: Record<string, string>
  /** All of them have the new time within about a second. Their steady clocks go on. @param by for example `-1h` */
  set(by: string): Promise<void>
}

/** @returns null where libfaketime cannot be had: the test is skipped then, or has failed with `CI=true` */
export async function setClock(t: ServerOwner): Promise<SetClock | null> {
  const program = await programFor(t, 'faketime')
  if (program === null) return null
  // The library of programs with threads.
  const { stdout } = await run(program, ['-m', '-f', '+0', 'printenv', 'LD_PRELOAD'])
  const folder = temporaryFolder(t)
  const file = join(folder, 'offset')
  const set = async (by: string): Promise<void> => {
    await writeFile(`${file}.new`, by)
    await rename(`${file}.new`, file)
  }
  await set('+0')
  const env = {
    LD_PRELOAD: stdout.trim(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  return { env, set }
}
