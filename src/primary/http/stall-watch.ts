import { steadyMs } from '../../core/schedule/steady-time.ts'

/** A client that reads nothing of a body for this long is cut off, milliseconds. */
export const BODY_STALL_MS = 30_000
const CHECK_MS = 1_000

/** A body that is being sent. */
export interface WatchedBody {
  /** Since when its client has read nothing of what waits for it, milliseconds; null while nothing waits. */
  readonly stuckSinceMs: number | null
  cutOff(): void
}

const bodies = new Set<WatchedBody>()
let timer: NodeJS.Timeout | undefined

/** Cuts the body off when its client has stopped reading. */
export function watch(body: WatchedBody): void {
  bodies.add(body)
  timer ??= setInterval(check, CHECK_MS).unref()
}

export function unwatch(body: WatchedBody): void {
  bodies.delete(body)
  if (bodies.size > 0) return
  clearInterval(timer)
  timer = undefined
}

function check(): void {
  const stuckMs = steadyMs() - BODY_STALL_MS
  for (const body of bodies) if (body.stuckSinceMs !== null && body.stuckSinceMs < stuckMs) body.cutOff()
}
