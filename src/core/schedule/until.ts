import { steadyMs } from './steady-time.ts'

/** How often a condition is checked by itself, milliseconds. */
const CHECK_MS = 10

/** Resolves when the condition holds, or the time is over. @param deadlineMs by `steadyMs` */
export async function until(condition: () => boolean, deadlineMs: number, checkMs = CHECK_MS): Promise<void> {
  while (!condition() && steadyMs() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, checkMs))
}
