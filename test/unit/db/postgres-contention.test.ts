import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LINE_MAX, Lines, TURN_LOCK_BYTES } from '../../../src/extras/postgres/contention.ts'

const linesOf = (max: number) => new Lines(max, [new SharedArrayBuffer(TURN_LOCK_BYTES)])
const never = Number.POSITIVE_INFINITY

test('limit: each conflict halves it down to one, successes raise it again', async () => {
  const line = linesOf(8).of('POST /bookings')
  line.enter(false, never)
  line.conflicted()
  line.conflicted()
  line.succeeded()
  assert.equal(line.enter(false, never), null, 'two may run')
  line.leave()
  for (let n = 0; n < 5; n++) line.conflicted()
  const waits = line.enter(false, never)
  assert.notEqual(waits, null, 'one runs already')
  line.leave()
  await waits
  line.leave()
  for (let n = 0; n < 300; n++) line.succeeded()
  assert.equal(line.enter(false, never), null)
})

test('line: those that were rolled back go first, each function has its own line', async () => {
  const lines = linesOf(1)
  const line = lines.of('a')
  const begun: string[] = []
  assert.equal(line.enter(false, never), null)
  const waiting = [
    line.enter(false, never)!.then(() => begun.push('new')),
    line.enter(true, never)!.then(() => begun.push('again')),
  ]
  assert.equal(lines.of('b').enter(false, never), null)
  line.leave()
  await waiting[1]
  line.leave()
  await waiting[0]
  assert.deepEqual(begun, ['again', 'new'])
})

test('line: it has a most, and refuses what waits when it closes', async () => {
  const lines = linesOf(1)
  const line = lines.of('a')
  line.enter(false, never)
  const waiting = Array.from({ length: LINE_MAX }, () => line.enter(false, never))
  assert.throws(() => line.enter(false, never), {
    code: 'DB_CONTENDED',
    status: 503,
    message: /1024 transactions of a/,
  })
  lines.close()
  const settled = await Promise.allSettled(waiting)
  assert.ok(settled.every((each) => each.status === 'rejected' && each.reason.kind === 'unavailable'))
})

test('line: who does not get its turn in time is told why, and a turn that takes long keeps nobody waiting', async (t) => {
  // Its own timer keeps no process.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const lines = linesOf(2)
  const line = lines.of('a')
  line.enter(false, never)
  for (let n = 0; n < 3; n++) line.conflicted()
  await assert.rejects(line.enter(false, performance.now() + 50)!, { code: 'DB_CONTENDED' })
  await line.enter(false, never)
  const third = line.enter(false, never)
  assert.notEqual(third, null, 'both places are taken')
  lines.close()
  await assert.rejects(third!, { kind: 'unavailable' })
})

test('line: after a deadlock one at a time runs, until many have succeeded', async () => {
  const line = linesOf(8).of('POST /both')
  line.enter(false, never)
  assert.equal(line.isWary, false)
  line.deadlocked()
  for (let n = 0; n < 40; n++) line.succeeded()
  assert.equal(line.isWary, true)
  const waits = line.enter(false, never)
  assert.notEqual(waits, null)
  line.leave()
  await waits
  for (let n = 0; n < 400; n++) line.succeeded()
  assert.equal(line.isWary, false)
  assert.equal(line.enter(false, never), null)
})
