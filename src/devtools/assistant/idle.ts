import type { ProcessView } from './process-view.ts'

/** Between two looks: lanes report what is in flight ten times a second. */
const POLL_MS = 150

export interface Pending {
  requests: number
  deliveries: number
}

/** Waits until nothing is pending at two looks in a row. @returns what still is after `timeoutMs` */
export async function pendingAfter(view: ProcessView, timeoutMs: number): Promise<Pending> {
  const deadlineMs = performance.now() + timeoutMs
  for (let quiet = 0; ; ) {
    const [lanes, accepted] = await Promise.all([view.lanes(), view.pending()])
    const requests = lanes.reduce((sum, lane) => sum + lane.requests_in_flight, 0)
    const inLanes = lanes.reduce((sum, lane) => sum + lane.deliveries_in_flight, 0)
    const pending = { requests, deliveries: Math.max(inLanes, accepted) }
    quiet = pending.requests + pending.deliveries === 0 ? quiet + 1 : 0
    if (quiet === 2 || performance.now() >= deadlineMs) return pending
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
