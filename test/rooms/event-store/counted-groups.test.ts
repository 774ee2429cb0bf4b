import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Groups, type GroupsParts } from '../../../src/primary/event-store/groups.ts'
import { Horizon } from '../../../src/primary/event-store/horizon.ts'
import { ServerStore } from '../../../src/primary/event-store/server-store.ts'
import type { Slots } from '../../../src/primary/event-store/slots.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { STORE_MEMORY_BYTES, StoreMemory } from '../../../src/transport/memory/store-memory.ts'
import type { GroupKind } from '../../../src/transport/store-changes.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { postgresDb } from '../db/fixture.ts'

test('countOf(): counts the rows that an event makes for broadcasts of other processes', async (t) => {
  const server = await postgresServer(t)
  if (server === null) return
  const db = postgresDb(t, server, server.database) as unknown as StoreDatabase
  await prepareTables(db, true)
  const storeOf = (member: number): ServerStore =>
    new ServerStore({
      database: () => db,
      memory: new StoreMemory(new SharedArrayBuffer(STORE_MEMORY_BYTES)),
      groupsAreStored: async () => {},
      slots: () => ({ readable: () => [] }) as unknown as Slots,
      horizon: new Horizon(() => db, SYSTEM_CLOCK),
      member: () => member,
      isInHand: () => false,
      onLate: () => assert.fail(),
      isOpen: () => true,
    })
  const groupOf = (kind: GroupKind, event = 'order.taken') => ({ event, name: `shop.${kind}`, kind, seenMs: 1 })
  await storeOf(7).join([groupOf('group'), groupOf('broadcast')])
  await storeOf(8).join([groupOf('group'), groupOf('broadcast'), groupOf('temporary')])
  await storeOf(9).join([groupOf('broadcast'), groupOf('broadcast', 'order.shipped')])
  const memory = { mostGroups: 0 }
  const groups = new Groups({
    store: storeOf(7),
    memory,
    maxStored: 1000,
    clock: SYSTEM_CLOCK,
  } as unknown as GroupsParts)
  await groups.load()
  // Its own broadcast counts once it has subscribers.
  assert.deepEqual(
    [groups.countOf('order.taken'), groups.countOf('order.shipped'), groups.countOf('order.lost')],
    [4, 1, 0],
  )
})
