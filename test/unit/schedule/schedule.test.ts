import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reminder, RepeatingTask } from '../../../src/core/schedule/repeating-task.ts'
import { withTimeout } from '../../../src/core/schedule/waiting.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A task whose runs the test ends. */
function task() {
  const ends: ((waitMs: number) => void)[] = []
  const repeating = new RepeatingTask(() => new Promise((resolve) => ends.push(resolve)))
  return { repeating, ends }
}

test('each run begins so long after the last one has ended as that one says, and never during it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { repeating, ends } = task()
  repeating.start(10)
  repeating.start(0)
  t.mock.timers.tick(9)
  assert.equal(ends.length, 0)
  t.mock.timers.tick(1)
  assert.equal(ends.length, 1)
  t.mock.timers.tick(10_000)
  assert.equal(ends.length, 1)
  ends[0]!(50)
  await turn()
  t.mock.timers.tick(40)
  assert.equal(ends.length, 1)
  t.mock.timers.tick(10)
  assert.equal(ends.length, 2)
})

test('a run can be brought forward, during another one too, and is not put off', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { repeating, ends } = task()
  repeating.runWithin(0)
  t.mock.timers.tick(1)
  assert.equal(ends.length, 0, 'it was not started')
  repeating.start(1000)
  repeating.runWithin(5000)
  repeating.runWithin(10)
  t.mock.timers.tick(10)
  assert.equal(ends.length, 1)
  repeating.runWithin(20)
  ends[0]!(1000)
  await turn()
  t.mock.timers.tick(20)
  assert.equal(ends.length, 2)
})

test('it stops when a run that is under way has ended, and runs no more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { repeating, ends } = task()
  repeating.start(0)
  t.mock.timers.tick(0)
  let hasStopped = false
  const stopped = repeating.stop().then(() => {
    hasStopped = true
  })
  await turn()
  assert.deepEqual([hasStopped, repeating.isStopped], [false, true])
  ends[0]!(0)
  await stopped
  repeating.runWithin(0)
  t.mock.timers.tick(1000)
  assert.equal(ends.length, 1)
})

test('a reminder is due at once, and for each trouble once in its time', async () => {
  const reminder = new Reminder(30)
  assert.deepEqual([reminder.isDue('a'), reminder.isDue('a'), reminder.isDue('b')], [true, false, true])
  await new Promise((resolve) => setTimeout(resolve, 35))
  assert.equal(reminder.isDue('a'), true)
})

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
