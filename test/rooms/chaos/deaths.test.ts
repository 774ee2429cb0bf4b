import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeOf, deathsOf } from '../../chaos/deaths.ts'

const guiltyOf = (plugin: string | null) => ({ plugin, handler: null, line: null, evidence: 'stack' as const })
const workOf = (plugin: string, name: string) => ({ kind: 'request' as const, name, plugin, id: null, for_ms: 1 })
const EXIT = workOf('chaos.ExitProcess', 'POST /chaos/faults/exit')
const LOOP = workOf('chaos.LoopForEver', 'POST /chaos/faults/loop')
const USER = workOf('users.CreateUser', 'POST /users')

test('a death is the doing of whom the runtime blames', () => {
  assert.equal(causeOf({ guilty: guiltyOf('chaos.ExhaustHeap'), in_flight: [EXIT] }), 'heap')
  assert.equal(causeOf({ guilty: guiltyOf('chaos.TakePoison'), in_flight: [] }), 'poison')
})

test('where it blames nobody, or an innocent, the only culprit in flight did it', () => {
  assert.equal(causeOf({ guilty: null, in_flight: [USER, EXIT, USER] }), 'exit')
  assert.equal(causeOf({ guilty: guiltyOf('users.CreateUser'), in_flight: [USER, LOOP, LOOP] }), 'loop')
  assert.equal(causeOf({ guilty: null, in_flight: [EXIT, LOOP] }), 'other')
  assert.equal(causeOf({ guilty: null, in_flight: [USER] }), 'other')
})

test('deaths are read from the lines of the supervisor that tell of one', () => {
  const line = { level: 50, identity: 'supervisor', time: 5, guilty: null, in_flight: [] }
  const exited = 'Lane 0 died: process.exit(41) was called'
  const stalled = 'Lane 1 died: its loop stood still for 1000 ms'
  assert.deepEqual(
    deathsOf([
      { ...line, msg: exited, in_flight: [USER, EXIT] },
      { ...line, msg: '6 lanes died within 60 s: the next start of lane 1 waits 1000 ms' },
      { ...line, time: 7, msg: stalled },
      { ...line, identity: 'users.CreateUser', msg: 'Lane 9 died' },
    ]),
    [
      { timeMs: 5, cause: 'exit', message: exited, inFlight: ['POST /users', 'POST /chaos/faults/exit'] },
      { timeMs: 7, cause: 'other', message: stalled, inFlight: [] },
    ],
  )
})
