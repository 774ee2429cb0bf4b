import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { KeySlots } from '../../../src/primary/event-log/membership.ts'
import { SLOTS } from '../../../src/runtime/event-log/tables.ts'
import type { LogDatabase } from '../../../src/runtime/event-store/database.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

const ME = 2
const OTHER = 1

/** What belongs to slots: the statements that take them are the same on every database. All are the other's. */
async function tables(t: TestContext): Promise<LogDatabase> {
  const database = memoryDatabase(t)
  await database.execute('CREATE TABLE heddle_process (epoch INTEGER PRIMARY KEY, adopter INTEGER)')
  await database.execute(
    'CREATE TABLE heddle_slot (slot INTEGER PRIMARY KEY, holder INTEGER NOT NULL, heir INTEGER NOT NULL DEFAULT 0)',
  )
  await database.execute(`INSERT INTO heddle_process (epoch) VALUES (${OTHER}), (${ME})`)
  for (let slot = 0; slot < SLOTS; slot++)
    await database.execute(`INSERT INTO heddle_slot (slot, holder) VALUES (${slot}, ${OTHER})`)
  return database
}

test('slots are taken from a process that is gone, and from none that is known', async (t) => {
  const database = await tables(t)
  const slots = new KeySlots(
    () => database,
    () => ME,
  )
  // It delivers nothing, and has not gone: what it has in hand would be delivered twice at a time.
  await slots.look([ME])
  assert.equal(slots.held.size, 0)
  await database.execute('DELETE FROM heddle_process WHERE epoch = $1', [OTHER])
  await slots.look([ME])
  assert.equal(slots.hasAll, true)
})

test('a process whose own events another has taken over takes none', async (t) => {
  const database = await tables(t)
  const slots = new KeySlots(
    () => database,
    () => ME,
  )
  await database.execute('DELETE FROM heddle_process WHERE epoch = $1', [OTHER])
  await database.execute('UPDATE heddle_process SET adopter = 3', [])
  await slots.look([ME])
  assert.equal(slots.held.size, 0)
})
