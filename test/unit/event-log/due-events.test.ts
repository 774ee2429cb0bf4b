import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { DueEvents } from '../../../src/primary/event-log/due-events.ts'
import type { DuePlace, SqlLog } from '../../../src/primary/event-log/sql-log.ts'

/** The first position of this process. */
const FIRST = 10
const DELAY_MS = 40

/** @param table what a look finds there */
function dueEvents(t: TestContext, table: readonly DuePlace[]): DueEvents {
  const log = { clock: SYSTEM_CLOCK, nextFree: FIRST, readDue: async () => table } as unknown as SqlLog
  const due = new DueEvents(log, () => {})
  t.after(() => due.close())
  due.begin(Date.now())
  return due
}

async function dueNow(due: DueEvents, count: number): Promise<number[]> {
  const found: number[] = []
  while (found.length < count) {
    found.push(...due.due())
    await new Promise(setImmediate)
  }
  return found
}

test('after the death of a lane it is known which delayed events nobody has handed on', async (t) => {
  const dueMs = Date.now() + DELAY_MS
  const [earlier, told, untold, late] = [FIRST - 1, FIRST, FIRST + 1, FIRST + 2] as const
  const due = dueEvents(
    t,
    [earlier, told, untold, late].map((seq) => ({ dueMs, seq })),
  )
  assert.ok(due.keep(dueMs, told))
  due.laneGone(Date.now())
  await due.look()
  // Its lane lives: it has only committed before the look, and handed on after it.
  assert.ok(due.keep(dueMs, late))
  const found = await dueNow(due, 4)
  assert.deepEqual([...new Set(found)].sort(), [earlier, told, untold, late].sort())
  assert.deepEqual(
    [earlier, told, untold, late].map((seq) => due.wasUntold(seq)),
    [false, false, true, false],
  )
  assert.equal(due.wasUntold(untold), false, 'it is recorded once')
})
