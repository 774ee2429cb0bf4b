import type { LogWriter } from '../logging/log-writer.ts'
import type { Runtime } from './runtime.ts'

/** All threads have this long at least to end when the process does, milliseconds. One that runs JavaScript takes 2 to 3; one that loads modules, or waits for a disk, longer. */
const THREADS_END_MS = 1500

/**
 * Ends the process, whatever its threads do. `process.exit` joins every thread, and so waits for ever for one that is inside a native call,
 * or that waits for a file which never answers: then only SIGKILL ends the process, sent to itself. Supervisors see that signal.
 * @param leftMs what a drain has left of its time
 */
export async function endProcess(exitCode: number, runtime: Runtime, logWriter: LogWriter, leftMs = 0): Promise<void> {
  const held = await runtime.abandon(Math.max(THREADS_END_MS, leftMs))
  if (held > 0) {
    runtime.log(
      'ERROR',
      `${held} threads or calls do not end, for they are inside native code: SIGKILL ends the process`,
      'main',
    )
  }
  logWriter.flush()
  if (held === 0) process.exit(exitCode)
  process.kill(process.pid, 'SIGKILL')
}
