import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Slots } from '../../../src/primary/event-store/slots.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { slotOf } from '../../../src/runtime/event-store/server-tables.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { postgresDb } from '../db/fixture.ts'

const ME = 7
const DEAD = 8
const GROUP = { id: 1, event: 'order.taken', name: 'shop.onTaken', kind: 'group' } as const
const SUSPECTS = 100
const OF_KEY = 16

/** A group of which a member that is gone has all slots, and this member. */
async function takeover(t: TestContext) {
  const server = await postgresServer(t)
  if (server === null) return null
  const db = postgresDb(t, server, server.database) as unknown as StoreDatabase
  await prepareTables(db, true)
  await db.execute("INSERT INTO heddle_group (id, event, grp, seen_ms) VALUES (1, 'order.taken', 'shop.onTaken', 0)")
  await db.execute(
    `INSERT INTO heddle_member (id, replica, identity, until) OVERRIDING SYSTEM VALUE VALUES (${ME}, 'me', '{}', now() + interval '1 hour')`,
  )
  await db.execute('INSERT INTO heddle_member_group (member, grp) VALUES ($1, 1)', [ME])
  await db.execute(
    'INSERT INTO heddle_slot (grp, slot, member, epoch) SELECT 1, generate_series(0, 15), $1::bigint, 3',
    [DEAD],
  )
  const insert = (count: number, key: string | null, share: string | null = null): Promise<unknown> =>
    db.execute(
      `INSERT INTO heddle_delivery (grp, slot, thread, event_id, event, envelope, payload, key, share)
       SELECT 1, ${key === null ? '0' : slotOf('$1::text')}, 1, 'evt_' || n, 'order.taken', '', '{}', $1::text, $3::text FROM generate_series(1, $2::int) AS n`,
      [key, count, share],
    )
  const slots = new Slots({
    database: () => db,
    member: () => ME,
    suspects: SUSPECTS,
    suspectsOfKey: OF_KEY,
    sharesOf: async () =>
      (await db.query<{ share: string }>('SELECT DISTINCT share FROM heddle_delivery WHERE share IS NOT NULL')).map(
        ({ share }) => share,
      ),
    onTaken: () => {},
    onDraining: () => {},
    onGone: () => {},
    written: async () => {},
    onReleased: () => {},
  })
  slots.add(GROUP)
  return { db, insert, take: () => slots.look([ME], 'me') }
}

test('takeover: rows of blocked keys and rows far behind in their keys are no suspects', async (t) => {
  const server = await takeover(t)
  if (server === null) return
  const { db, insert, take } = server
  await db.execute(
    `INSERT INTO heddle_parked (grp, key, dead_letter, slot) VALUES (1, 'parked', 'dl_1', ${slotOf("'parked'::text")})`,
  )
  await insert(2 * SUSPECTS, 'parked')
  await insert(2 * SUSPECTS, 'long')
  await insert(3, null)
  // As if the blocked key were before all others in every slot.
  await db.execute('UPDATE heddle_delivery SET slot = 0')
  await take()
  const rows = await db.query<{ key: string | null; count: number; behind: number }>(
    `SELECT key, count(*) AS count, max(n) AS behind FROM
       (SELECT key, crashes, row_number() OVER (PARTITION BY key ORDER BY seq) AS n FROM heddle_delivery) AS d
     WHERE crashes = 1 GROUP BY key ORDER BY key`,
  )
  assert.deepEqual(
    rows.map(({ key, count, behind }) => [key, Number(count), Number(behind)]),
    [
      ['long', OF_KEY, OF_KEY],
      [null, 3, 3],
    ],
  )
})

test('takeover: where shares take turns, the first rows of each are suspects, each once', async (t) => {
  const server = await takeover(t)
  if (server === null) return
  const { db, insert, take } = server
  await insert(2 * SUSPECTS, null, '1["large"]')
  for (const small of ['a', 'b', 'c']) await insert(SUSPECTS, null, `1["${small}"]`)
  await db.execute('UPDATE heddle_slot SET member = $1 WHERE slot = 1', [ME])
  await db.execute('UPDATE heddle_delivery SET slot = 1 WHERE share = \'1["c"]\'')
  await take()
  const rows = await db.query<{ share: string; crashes: number; count: number; last: number }>(
    `SELECT share, crashes, count(*) AS count, max(n) AS last FROM
       (SELECT share, crashes, row_number() OVER (PARTITION BY share ORDER BY seq) AS n FROM heddle_delivery) AS d
     WHERE crashes > 0 GROUP BY share, crashes ORDER BY share`,
  )
  assert.deepEqual(
    rows.map(({ share, crashes, count, last }) => [share, crashes, Number(count), Number(last)]),
    [
      ['1["a"]', 1, SUSPECTS / 4, SUSPECTS / 4],
      ['1["b"]', 1, SUSPECTS / 4, SUSPECTS / 4],
      // The first of the slot.
      ['1["large"]', 1, SUSPECTS, SUSPECTS],
    ],
  )
})
