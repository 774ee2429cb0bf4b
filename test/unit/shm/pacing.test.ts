import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pacing } from '../../../src/transport/rings/pacing.ts'

test('Pacing: readTurn() ends at the first read that finds fewer frames than it wants', () => {
  const wanted: number[] = []
  let left = 10
  const pacing = new Pacing((maxFrames) => {
    wanted.push(maxFrames)
    const read = Math.min(left, maxFrames)
    left -= read
    return read
  })
  assert.equal(pacing.readTurn(), 10)
  assert.deepEqual(wanted, [1, 2, 4, 8])
})

test('Pacing: readTurn() ends after its share when there is no end of frames', () => {
  const wanted: number[] = []
  const pacing = new Pacing((maxFrames) => {
    wanted.push(maxFrames)
    return maxFrames
  })
  // A thread that had no core meanwhile ends its turn by the clock.
  assert.ok(pacing.readTurn() < 1024 + 32)
  assert.ok(Math.max(...wanted) <= 32, `${wanted}`)
})

test('Pacing: isLookWorthwhile() is false after vain looks, and true again now and then, or once a look finds frames', () => {
  const pacing = new Pacing(() => 0)
  for (let look = 0; look < 4; look++) {
    assert.equal(pacing.isLookWorthwhile(), true)
    pacing.looked(0)
  }
  const worthwhile = Array.from({ length: 64 }, () => pacing.isLookWorthwhile())
  assert.deepEqual(
    worthwhile.flatMap((is, n) => (is ? [n] : [])),
    [31, 63],
  )
  pacing.looked(1)
  assert.equal(pacing.isLookWorthwhile(), true)
})
