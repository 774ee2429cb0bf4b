import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Horizon } from '../../../src/primary/event-store/horizon.ts'
import { ServerStore } from '../../../src/primary/event-store/server-store.ts'
import { raiseOfShares } from '../../../src/primary/event-store/share-rows.ts'
import type { OwnedSlot, Slots } from '../../../src/primary/event-store/slots.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { STORE_MEMORY_BYTES, StoreMemory } from '../../../src/transport/memory/store-memory.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { postgresDb } from '../db/fixture.ts'

test('shares are read by their index, whatever the server knows of the table', async (t) => {
  const server = await postgresServer(t)
  if (server === null) return
  const db = postgresDb(t, server, server.database) as unknown as StoreDatabase
  await prepareTables(db, true)
  await db.execute('ALTER TABLE heddle_delivery SET (autovacuum_enabled = false)')
  const { host, port, user, password, database } = server
  const client = new pg.Client({ host, port, user, password, database })
  await client.connect()
  // As the primary's sessions.
  await client.query('SET enable_seqscan = off')
  const asked: { sql: string; params: readonly unknown[] }[] = []
  const watched = new Proxy(db, {
    get(of, name: keyof StoreDatabase) {
      const value = of[name]
      if (typeof value !== 'function') return value
      return (sql: string, params: readonly never[] = []) => {
        asked.push({ sql, params })
        return (value as typeof db.query).call(of, sql, params)
      }
    },
  })
  const slot: OwnedSlot = { group: 1, slot: 3, epoch: 1, state: 'held', inHand: 0 }
  const store = new ServerStore({
    database: () => watched,
    memory: new StoreMemory(new SharedArrayBuffer(STORE_MEMORY_BYTES)),
    groupsAreStored: async () => {},
    slots: () => ({ readable: () => [slot] }) as unknown as Slots,
    horizon: new Horizon(() => db, SYSTEM_CLOCK),
    member: () => 7,
    isInHand: () => false,
    onLate: () => assert.fail(),
    isOpen: () => true,
  })
  const ask = async (): Promise<void> => {
    const { sql, params } = asked.at(-1)!
    const { rows } = await client.query(`EXPLAIN ${sql}`, [...params])
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    assert.match(plan, /heddle_delivery_shared/)
    assert.doesNotMatch(plan, /heddle_delivery_order/)
  }
  const askAll = async (): Promise<void> => {
    const shares = await store.nextShares(1, ['', '', ''], 32)
    await ask()
    const share = shares[1]![0] ?? '1["t1"]'
    const asks = [{ share, limit: 1, after: 0, inHand: [] }]
    const page = await store.readShares(1, asks)
    await ask()
    await store.passShare(1, asks[0]!)
    await ask()
    await raiseOfShares(watched, 'postgres', 1, [share], [], 8, [3])
    await ask()
    if (shares[1]!.length > 0) assert.equal(page.length, 1)
  }
  try {
    const fill = () =>
      db.execute(
        `INSERT INTO heddle_delivery (grp, slot, thread, event_id, event, envelope, payload, share)
       SELECT 1, 3, 1, 'evt_' || n, 'order.taken', '[null,null,"","a",0,""]', '{}', '1["t' || n % 20000 || '"]' FROM generate_series(1, 40000) AS n`,
        [],
      )
    // It knows nothing; then that the table is empty, which it is no longer; then all.
    await askAll()
    await fill()
    await askAll()
    await db.execute('DELETE FROM heddle_delivery')
    await db.execute('ANALYZE heddle_delivery')
    await fill()
    await askAll()
    await db.execute('ANALYZE heddle_delivery')
    await askAll()
  } finally {
    await client.end()
  }
})
