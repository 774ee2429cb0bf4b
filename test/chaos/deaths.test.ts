import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeOf, deathsOf } from './deaths.ts'

test('a death is told by what it says, and else by the likeliest fault in flight', () => {
  assert.equal(causeOf('Lane 0 died: chaos: thrown by a timer', ['POST /chaos/faults/loop']), 'timer')
  assert.equal(causeOf('Lane 0 died: chaos: rejected by nobody', []), 'rejection')
  assert.equal(causeOf('Lane 0 died: worker exited with code: 41', []), 'exit')
  assert.equal(causeOf('Lane 0 died: worker exited with code: 42', []), 'transaction')
  assert.equal(causeOf('Lane 0 died: worker exited with code: 66', []), 'poison')
  assert.equal(
    causeOf('Lane 0 died: Worker terminated due to reaching memory limit: JS heap out of memory', []),
    'heap',
  )
  const stalled = 'Lane 0 died: its loop stood still for 1000 ms'
  assert.equal(causeOf(stalled, ['POST /users', 'POST /chaos/faults/hang', 'POST /chaos/faults/loop']), 'loop')
  assert.equal(causeOf(stalled, ['POST /chaos/faults/heap']), 'heap')
  assert.equal(causeOf(stalled, ['POST /chaos/faults/exit', 'POST /chaos/faults/loop']), 'loop')
  assert.equal(causeOf(stalled, ['POST /chaos/faults/exit']), 'exit')
  assert.equal(causeOf(stalled, ['POST /chaos/faults/hang']), 'other')
})

test('deaths are read from the lines of the supervisor that tell of one', () => {
  const line = { level: 50, identity: 'supervisor', time: 5 }
  const exited = 'Lane 0 died: worker exited with code: 41'
  const stalled = 'Lane 1 died: its loop stood still for 1000 ms'
  assert.deepEqual(
    deathsOf([
      { ...line, msg: exited, in_flight: ['POST /users'] },
      { ...line, msg: '6 lanes died within 60 s: the next start of lane 1 waits 1000 ms' },
      { ...line, time: 7, msg: stalled },
      { ...line, identity: 'users.CreateUser', msg: 'Lane 9 died' },
    ]),
    [
      { timeMs: 5, cause: 'exit', message: exited, inFlight: ['POST /users'] },
      { timeMs: 7, cause: 'other', message: stalled, inFlight: [] },
    ],
  )
})
