// The limits that processes on one server share.
import { movedMs } from '../../core/schedule/moved-time.ts'
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { type Ask, type Grant, grantOf } from '../events/rate-limits.ts'
import { LATE_MAX_MS, type RateLimit, type RateState, takeBack } from '../events/rate-window.ts'

const NOW = CLOCK_MS.postgres
const MAKE = `INSERT INTO heddle_limit (name, state, until_ms) SELECT value, '[]', ${NOW} FROM json_array_elements_text($1::json) ON CONFLICT (name) DO NOTHING`
/** In one order, so that two processes do not wait for each other. */
const LOCK = `SELECT name, state, ${NOW} AS now_ms FROM heddle_limit WHERE name IN (SELECT json_array_elements_text($1::json)) ORDER BY name FOR UPDATE`
const WRITE = `UPDATE heddle_limit AS l SET state = n.state, until_ms = ${NOW} + n.kept FROM json_to_recordset($1::json) AS n (name text, state text, kept bigint)
  WHERE l.name = n.name`

/** One of each has not begun. */
export function giveLimitsBack(db: StoreDatabase, limits: readonly RateLimit[]): Promise<void> {
  return ownTransaction(db, async (tx) => {
    const names = JSON.stringify(limits.map(({ name }) => name).sort())
    const rows = await tx.query<{ name: string; state: string; now_ms: number }>(LOCK, [names])
    const written = rows.map(({ name, state: json, now_ms }) => {
      const state = JSON.parse(json) as RateState
      takeBack(state, Number(now_ms) + movedMs())
      return { name, state: JSON.stringify(state), kept: keptMs(limits.find((limit) => limit.name === name)!) }
    })
    if (written.length > 0) await tx.execute(WRITE, [JSON.stringify(written)])
  })
}

const keptMs = ({ perMs }: RateLimit): number => 2 * perMs + LATE_MAX_MS

/** Takes from limits in the database, by its clock. */
export function askLimits(db: StoreDatabase, asks: readonly Ask[]): Promise<Grant[]> {
  const limits = new Map(asks.flatMap(({ limits: all }) => all.map((limit) => [limit.name, limit] as const)))
  const names = [JSON.stringify([...limits.keys()].sort())]
  return ownTransaction(db, async (tx) => {
    const lock = () => tx.query<{ name: string; state: string; now_ms: number }>(LOCK, names)
    let rows = await lock()
    if (rows.length < limits.size) {
      await tx.execute(MAKE, names)
      rows = await lock()
    }
    const states = new Map(rows.map(({ name, state }) => [name, JSON.parse(state) as RateState]))
    const nowMs = Number(rows[0]!.now_ms) + movedMs()
    const grants = asks.map((ask) =>
      grantOf(
        new Map(ask.limits.map((limit): [RateLimit, RateState] => [limit, states.get(limit.name)!])),
        nowMs,
        ask.wanted,
        ask.lateMs,
      ),
    )
    const used = asks.flatMap(({ limits: all }, n) => (grants[n]!.granted > 0 ? all : []))
    if (used.length > 0) {
      const written = [...new Set(used)].map((limit) => ({
        name: limit.name,
        state: JSON.stringify(states.get(limit.name)),
        kept: keptMs(limit),
      }))
      await tx.execute(WRITE, [JSON.stringify(written)])
    }
    return grants
  })
}
