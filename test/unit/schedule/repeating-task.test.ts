import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reminder, RepeatingTask } from '../../../src/core/schedule/repeating-task.ts'

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
