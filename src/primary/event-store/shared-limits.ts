// The limits that processes on one server share.
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { type Grant, grantOf } from '../events/rate-limits.ts'
import type { RateLimit, RateState } from '../events/rate-window.ts'

/** Takes from limits in the database, by its clock. */
export function askLimits(db: StoreDatabase, limits: readonly RateLimit[], wanted: number): Promise<Grant> {
  // One order, so that two processes do not wait for each other.
  const sorted = [...limits].sort((a, b) => (a.name < b.name ? -1 : 1))
  return ownTransaction(db, async (tx) => {
    const states = new Map<RateLimit, RateState>()
    let nowMs = 0
    for (const limit of sorted) {
      await tx.execute(
        `INSERT INTO heddle_limit (name, state, at_ms) VALUES ($1, '[]', ${CLOCK_MS.postgres}) ON CONFLICT (name) DO NOTHING`,
        [limit.name],
      )
      const row = await tx.queryOne<{ state: string; now_ms: number }>(
        `SELECT state, ${CLOCK_MS.postgres} AS now_ms FROM heddle_limit WHERE name = $1 FOR UPDATE`,
        [limit.name],
      )
      states.set(limit, JSON.parse(row!.state) as RateState)
      nowMs = Number(row!.now_ms)
    }
    const grant = grantOf(states, nowMs, wanted)
    if (grant.granted > 0)
      for (const [{ name }, state] of states)
        await tx.execute(`UPDATE heddle_limit SET state = $1, at_ms = ${CLOCK_MS.postgres} WHERE name = $2`, [
          JSON.stringify(state),
          name,
        ])
    return grant
  })
}
