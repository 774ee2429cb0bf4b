// The permits that processes on one server share: how many handlers of a subscriber run at a time.
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import type { HeldPermits, PermitAsk } from '../events/permits.ts'

const NOW = CLOCK_MS.postgres
/** A process that has not asked for so long does not wait any more, milliseconds. */
const ASKED_MS = 2000
const NAMES = 'SELECT value FROM json_array_elements_text($1::json)'
/** In one order, so that two processes do not wait for each other. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('heddle_permit ' || n.value, 0)) FROM (${NAMES} ORDER BY 1) AS n`
const ROWS = 'json_to_recordset($1::json) AS r (name text, held integer, waits boolean)'
/** What this process has, and since when it waits for more. */
const TELL = `INSERT INTO heddle_permit (name, member, held, since_ms, asked_ms)
    SELECT name, $2, held, CASE WHEN waits THEN ${NOW} ELSE 0 END, ${NOW} FROM ${ROWS}
  ON CONFLICT (name, member) DO UPDATE SET held = excluded.held, asked_ms = excluded.asked_ms,
    since_ms = CASE WHEN excluded.since_ms > 0 AND heddle_permit.since_ms > 0 THEN heddle_permit.since_ms ELSE excluded.since_ms END`
/** What a process had that has ended is free. Who has waited longer is first. */
const OTHERS = `SELECT own.name, sum(p.held) AS held, count(*) FILTER (
    WHERE p.since_ms > 0 AND p.asked_ms > ${NOW} - ${ASKED_MS} AND (p.since_ms, p.member) < (own.since_ms, own.member)) AS earlier
  FROM heddle_permit AS own JOIN heddle_permit AS p ON p.name = own.name AND p.member <> own.member JOIN heddle_member AS m ON m.id = p.member
  WHERE own.member = $2 AND own.name IN (SELECT name FROM ${ROWS}) GROUP BY own.name`
const FORGET = `DELETE FROM heddle_permit WHERE member = $2 AND name IN (SELECT name FROM ${ROWS} WHERE held = 0 AND NOT waits)`

const rowsOf = (permits: readonly HeldPermits[]): string =>
  JSON.stringify(permits.map(({ name, held, isWaiting }) => ({ name, held, waits: isWaiting })))

/** Asks for permits. @returns how many more of each this process got */
export function askPermits(db: StoreDatabase, member: number, asks: readonly PermitAsk[]): Promise<number[]> {
  return ownTransaction(db, async (tx) => {
    await tx.query(LOCK, [JSON.stringify(asks.map(({ name }) => name))])
    await tx.execute(TELL, [rowsOf(asks), member])
    const rows = await tx.query<{ name: string; held: number; earlier: number }>(OTHERS, [rowsOf(asks), member])
    const others = new Map(rows.map(({ name, held, earlier }) => [name, Number(held) + Number(earlier)]))
    const granted = asks.map(({ name, max, wanted, held }) =>
      Math.max(0, Math.min(wanted, max - held - (others.get(name) ?? 0))),
    )
    const got = asks.flatMap((ask, n) =>
      granted[n]! > 0 ? [{ name: ask.name, held: ask.held + granted[n]!, isWaiting: false }] : [],
    )
    if (got.length > 0) await tx.execute(TELL, [rowsOf(got), member])
    return granted
  })
}

/** Tells what this process has left. */
export async function tellPermits(db: StoreDatabase, member: number, permits: readonly HeldPermits[]): Promise<void> {
  const told = [rowsOf(permits), member]
  await ownTransaction(db, async (tx) => {
    await tx.execute(TELL, told)
    await tx.execute(FORGET, told)
  })
}

/** Forgets those of processes that have ended. */
export async function prunePermits(db: StoreDatabase): Promise<void> {
  await db.execute('DELETE FROM heddle_permit WHERE NOT EXISTS (SELECT 1 FROM heddle_member WHERE id = member)')
}
