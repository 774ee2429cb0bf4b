import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withTimeout } from '../../../src/core/schedule/waiting.ts'

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test('a promise that settles in time gives what it does, and leaves no timer', async () => {
  const before = timers()
  assert.equal(await withTimeout(Promise.resolve('value'), 60_000, 'late'), 'value')
  await assert.rejects(withTimeout(Promise.reject(new Error('not today')), 60_000, 'late'), /not today/)
  assert.equal(timers(), before)
})

test('a promise that takes longer is not waited for, and nobody hears of its fault', async () => {
  let fail = (_: Error): void => {}
  const slow = new Promise<string>((_, reject) => {
    fail = reject
  })
  assert.equal(await withTimeout(slow, 5, 'late'), 'late')
  // An unhandled rejection would end the test.
  fail(new Error('too late'))
  await new Promise(setImmediate)
})

test('a time that is over lets through what is settled already', async () => {
  assert.equal(await withTimeout(Promise.resolve('value'), -10, 'late'), 'value')
})
