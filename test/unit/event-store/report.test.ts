import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import { DbError } from '../../../src/core/errors/catalogue.ts'
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

test('the result is what is written last, whatever was reported while an earlier write took its time', async () => {
  const timers: (() => void)[] = []
  const clock = {
    ...SYSTEM_CLOCK,
    after: (_: number, run: () => void) => {
      timers.push(run)
      return SYSTEM_CLOCK.after(0, () => {})
    },
  }
  const results: unknown[] = []
  const answers: (() => void)[] = []
  const tx = {
    execute: async (sql: string, params: unknown[]) => {
      if (sql.startsWith('INSERT INTO heddle_report')) results.push(params[4])
      return { rowCount: 1 }
    },
    queryOne: async () => null,
  } as unknown as Queryable
  const database = {
    dialect: 'sqlite',
    transaction: async (work: (tx: Queryable) => Promise<unknown>) => {
      await new Promise<void>((resolve) => answers.push(resolve))
      return work(tx)
    },
  } as unknown as StoreDatabase
  const report = new Report(
    {
      clock,
      database: () => database,
      opened: () => Promise.resolve(),
      reported: () => {},
      log: (message) => assert.fail(message),
    },
    { eventId: 'evt_1', group: 'work.Imports.importRows', attempt: 1 },
    () => true,
  )
  const turn = (): Promise<void> => new Promise(setImmediate)
  report.progress(1, 2, undefined)
  timers[0]!()
  await turn()
  report.progress(2, 2, undefined)
  const ended = report.end({ imported: 2 }, undefined)
  answers[0]!()
  await turn()
  // The time of what was reported during the first write is over while the result is written.
  timers[1]?.()
  report.emit('too late')
  answers[1]!()
  await ended
  for (const timer of timers.slice(2)) timer()
  await turn()
  for (const answer of answers.slice(2)) answer()
  await turn()
  assert.deepEqual(results, [null, '{"imported":2}'])
})

test('chunks whose commit was not answered are not stored again, and those that came meanwhile are', async () => {
  const chunks: [n: unknown, chunk: unknown][] = []
  let row = { last_n: 0, generation: 0 }
  const tx = {
    execute: async (sql: string, params: unknown[]) => {
      if (sql.startsWith('INSERT INTO heddle_chunk')) chunks.push([params[2], params[4]])
      else if (sql.startsWith('INSERT INTO heddle_report'))
        row = { last_n: params[5] as number, generation: params[7] as number }
      return { rowCount: 1 }
    },
    queryOne: async () => (row.generation === 0 ? null : row),
  } as unknown as Queryable
  let lost = 2
  const database = {
    dialect: 'sqlite',
    transaction: async (work: (tx: Queryable) => Promise<unknown>) => {
      const result = await work(tx)
      if (--lost < 0) return result
      report.emit(`after ${lost}`)
      throw new DbError('unavailable', 'the answer is lost')
    },
  } as unknown as StoreDatabase
  const report = new Report(
    {
      clock: { ...SYSTEM_CLOCK, after: (_, run) => SYSTEM_CLOCK.after(0, run) },
      database: () => database,
      opened: () => Promise.resolve(),
      reported: () => {},
      log: (message) => assert.fail(message),
    },
    { eventId: 'evt_1', group: 'work.Imports.importRows', attempt: 1 },
    () => true,
  )
  report.emit('first')
  report.emit('second')
  await report.end(undefined, undefined)
  const told = ['first', 'second', 'after 1', 'after 0'].map((chunk, n) => [n + 1, JSON.stringify(chunk)])
  assert.deepEqual(chunks, told)
})
