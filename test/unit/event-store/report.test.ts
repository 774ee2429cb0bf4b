import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { Report } from '../../../src/runtime/event-store/report.ts'

test('progress that is reported just before a cancel is dropped, and the end does not wait for it', async () => {
  let gathers = 0
  const clock = {
    ...SYSTEM_CLOCK,
    after: (...args: Parameters<typeof SYSTEM_CLOCK.after>) => {
      gathers++
      return SYSTEM_CLOCK.after(...args)
    },
  }
  let isOwn = true
  const report = new Report(
    {
      clock,
      database: () => ({ transaction: () => assert.fail('nothing is stored') }) as unknown as StoreDatabase,
      opened: () => Promise.resolve(),
      reported: () => assert.fail('nothing is stored'),
      log: (message) => assert.fail(message),
    },
    { eventId: 'evt_1', group: 'work.Imports.importRows', attempt: 1 },
    () => isOwn,
  )
  report.progress(1, 2, undefined)
  isOwn = false
  await report.failed()
  assert.equal(gathers, 1, 'it is not tried again')
})
