import assert from 'node:assert/strict'
import { stat } from 'node:fs'
import { test } from 'node:test'
import { steadyMs } from '../../../src/core/schedule/clock.ts'
import { until, withTimeout } from '../../../src/core/schedule/waiting.ts'

const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('withTimeout(): what has arrived while the thread was blocked is read before the time is up', async () => {
  const answer = new Promise((resolve) => stat('.', () => resolve('in time')))
  const result = withTimeout(answer, 20, 'late')
  block(100)
  assert.equal(await result, 'in time')
})

test('withTimeout(): a thread that blocks has no more time than it is given', async () => {
  const result = withTimeout(new Promise(() => {}), 20, 'late')
  block(100)
  assert.equal(await result, 'late')
})

test('until(): ends at its deadline', async () => {
  const deadlineMs = steadyMs() + 30
  await until(() => false, deadlineMs)
  assert.ok(steadyMs() >= deadlineMs)
})
