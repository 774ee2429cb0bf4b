// The permits that processes on one server share: how many handlers of a subscriber run at a time.
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import type { PermitAsk } from '../events/permits.ts'

const NOW = CLOCK_MS.postgres
/** A process that has not asked for so long does not wait any more, milliseconds. */
const ASKED_MS = 2000
const NAMES = 'SELECT value FROM json_array_elements_text($1::json)'
/** In one order, so that two processes do not wait for each other. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('heddle_permit ' || n.value, 0)) FROM (${NAMES} ORDER BY 1) AS n`
const WANT = `INSERT INTO heddle_permit (name, member, held, since_ms, asked_ms) SELECT value, $2, 0, ${NOW}, ${NOW} FROM json_array_elements_text($1::json)
  ON CONFLICT (name, member) DO UPDATE SET asked_ms = excluded.asked_ms,
    since_ms = CASE heddle_permit.since_ms WHEN 0 THEN excluded.since_ms ELSE heddle_permit.since_ms END`
/** What a process had that has ended is free. Who has waited longer is first. */
const COUNT = `SELECT p.name, sum(p.held) AS held, count(*) FILTER (
    WHERE p.since_ms > 0 AND p.asked_ms > ${NOW} - ${ASKED_MS} AND (p.since_ms, p.member) < (own.since_ms, own.member)) AS earlier
  FROM heddle_permit AS own JOIN heddle_permit AS p ON p.name = own.name JOIN heddle_member AS m ON m.id = p.member
  WHERE own.member = $2 AND own.name IN (${NAMES}) GROUP BY p.name`
const GOT = `UPDATE heddle_permit AS p SET held = p.held + g.count, since_ms = 0 FROM json_to_recordset($1::json) AS g (name text, count integer)
  WHERE p.name = g.name AND p.member = $2`
const GIVE = `UPDATE heddle_permit AS p SET held = greatest(0, p.held - g.count) FROM json_to_recordset($1::json) AS g (name text, count integer)
  WHERE p.name = g.name AND p.member = $2`
const FORGET = `DELETE FROM heddle_permit WHERE member = $2 AND held = 0 AND since_ms = 0 AND name IN (SELECT name FROM json_to_recordset($1::json) AS g (name text))`

/** Asks for permits. @returns how many of each this process got */
export function askPermits(db: StoreDatabase, member: number, asks: readonly PermitAsk[]): Promise<number[]> {
  const names = JSON.stringify(asks.map(({ name }) => name))
  return ownTransaction(db, async (tx) => {
    await tx.query(LOCK, [names])
    await tx.execute(WANT, [names, member])
    const rows = await tx.query<{ name: string; held: number; earlier: number }>(COUNT, [names, member])
    const counts = new Map(rows.map(({ name, held, earlier }) => [name, Number(held) + Number(earlier)]))
    // Not even its own row: the process has been removed.
    const granted = asks.map(({ name, max, wanted }) =>
      Math.max(0, Math.min(wanted, max - (counts.get(name) ?? Number.POSITIVE_INFINITY))),
    )
    const got = asks.flatMap(({ name }, n) => (granted[n]! > 0 ? [{ name, count: granted[n] }] : []))
    if (got.length > 0) await tx.execute(GOT, [JSON.stringify(got), member])
    return granted
  })
}

export async function givePermitsBack(
  db: StoreDatabase,
  member: number,
  permits: readonly { readonly name: string; readonly count: number }[],
): Promise<void> {
  const given = [JSON.stringify(permits), member]
  await ownTransaction(db, async (tx) => {
    await tx.execute(GIVE, given)
    await tx.execute(FORGET, given)
  })
}

/** Forgets those of processes that have ended. */
export async function prunePermits(db: StoreDatabase): Promise<void> {
  await db.execute('DELETE FROM heddle_permit WHERE NOT EXISTS (SELECT 1 FROM heddle_member WHERE id = member)')
}
