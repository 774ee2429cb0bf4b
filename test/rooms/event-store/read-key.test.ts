import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Horizon } from '../../../src/primary/event-store/horizon.ts'
import { ServerStore } from '../../../src/primary/event-store/server-store.ts'
import type { OwnedSlot, Slots } from '../../../src/primary/event-store/slots.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { keyColumnOf } from '../../../src/runtime/event-store/event-columns.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { STORE_MEMORY_BYTES, StoreMemory } from '../../../src/transport/memory/store-memory.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { postgresDb } from '../db/fixture.ts'

const LIMIT = 8
const ROWS = 400
const ENVELOPE = '[null,null,"","shop.TakeOrders",1700000000000,"id"]'
const KEY = keyColumnOf('van')!

test('readKey(): returns the next rows of a key however many rows before them are settling', async (t) => {
  const server = await postgresServer(t)
  if (server === null) return
  const db = postgresDb(t, server, server.database) as unknown as StoreDatabase
  await prepareTables(db, true)
  await db.execute(
    `INSERT INTO heddle_delivery (grp, slot, thread, event_id, event, envelope, payload, key)
     SELECT 1, 3, 1, 'evt_' || n, 'order.taken', $1, '{}', $2 FROM generate_series(1, $3::int) AS n`,
    [ENVELOPE, KEY, ROWS],
  )
  const slot: OwnedSlot = { group: 1, slot: 3, epoch: 1, state: 'held', inHand: 0 }
  for (const settling of [10, 72, 73, 300, ROWS - 3]) {
    const store = new ServerStore({
      database: () => db,
      memory: new StoreMemory(new SharedArrayBuffer(STORE_MEMORY_BYTES)),
      groupsAreStored: async () => {},
      slots: () => ({ readable: () => [slot] }) as unknown as Slots,
      horizon: new Horizon(() => db, SYSTEM_CLOCK),
      member: () => 7,
      isInHand: (seq) => seq <= settling,
      onLate: () => assert.fail(),
      isOpen: () => true,
    })
    const page = await store.readKey(1, KEY, settling, LIMIT)
    const wanted = Array.from({ length: Math.min(LIMIT, ROWS - settling) }, (_, n) => settling + 1 + n)
    assert.deepEqual(
      page.map(({ seq }) => seq),
      wanted,
      `${settling} settling`,
    )
  }
})
