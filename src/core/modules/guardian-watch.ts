// Ends a process that hangs and whose guardian is gone.
import { ThreadClock, tasksOf, timesOf, Watcher } from '../schedule/thread-clock.cjs'

/** Taken before plugins are kept from signalling their own process. */
const kill = process.kill.bind(process)
/** How often the parent of the process is looked at, milliseconds. */
const LOOK_MS = 1000
/** An end in order takes SHUTDOWN_DELAY_MS, SHUTDOWN_TIMEOUT_MS and this at most, milliseconds: then the guardian would send SIGKILL. */
const END_MAX_MS = 4000

/**
 * Ends the process when its guardian is gone and it has not ended in time: its primary thread hangs, which cannot notice that nobody watches it any
 * more. Any lane whose loop turns does so, and the history's thread, in which no plugin runs. A process whose parent ends gets another one: source, getppid(2).
 * @param guardian the parent that the process had when it began: a thread that begins later may see another one
 * @param shutdownMs SHUTDOWN_DELAY_MS and SHUTDOWN_TIMEOUT_MS
 */
export function watchGuardian(guardian: number, shutdownMs: number): void {
  const tasks = tasksOf('self')
  const primary = new ThreadClock(() => (tasks === null ? null : timesOf(`${tasks}/${process.pid}`)))
  const watcher = new Watcher(2 * LOOK_MS)
  setInterval(() => {
    watcher.tick()
    if (process.ppid === guardian) return
    primary.pass(watcher.awakeMs)
    if (primary.ms > shutdownMs + END_MAX_MS) kill(process.pid, 'SIGKILL')
  }, LOOK_MS).unref()
}
