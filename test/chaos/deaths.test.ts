import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeOf, deathsOf } from './deaths.ts'

test('a death is told by what it says, and else by the blocking handler in flight', () => {
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
  assert.equal(causeOf(stalled, ['POST /chaos/faults/hang']), 'other')
})

test('deaths are counted from the log, and those without a cause are named', () => {
  const line = { level: 50, identity: 'supervisor' }
  const stalled = 'Lane 1 died: its loop stood still for 1000 ms'
  assert.deepEqual(
    deathsOf([
      { ...line, msg: 'Lane 0 died: worker exited with code: 41', in_flight: [] },
      { ...line, msg: 'Lane 1 died: worker exited with code: 41', in_flight: [] },
      { ...line, msg: stalled },
      { ...line, msg: '6 lanes died within 60 s: the next start of lane 1 waits 1000 ms' },
      { ...line, identity: 'users.CreateUser', msg: 'Lane 9 died' },
    ]),
    { byKind: { exit: 2, other: 1 }, unexplained: [stalled] },
  )
})
