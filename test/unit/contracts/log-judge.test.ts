import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertEffectsOnce, assertOneOwner, type LeaseEnd } from '../../contracts/log-judge.ts'
import type { Note } from '../../contracts/log-store.ts'

let atMs = 0
const note = (what: Note['what'], process: string, n: number, key = 'k'): Note => ({
  ...{ what, process, n, key, id: `evt_${n}`, atMs: ++atMs },
  ...{ group: 'work', tag: 'judged', attempt: 1, parent: null, thread: 1 },
})
const slotOf = (key: string): number => key.length
const judge =
  (notes: readonly Note[], ends: Record<string, LeaseEnd> = {}) =>
  () =>
    assertOneOwner(notes, slotOf, new Map(Object.entries(ends)))

test('assertOneOwner(): accepts a slot that goes from one process to another and back, between handlers', () => {
  const run = (process: string, n: number) => [note('begin', process, n), note('end', process, n)]
  judge([...run('a', 1), ...run('b', 2), ...run('a', 3)])()
  judge([note('begin', 'a', 1), note('begin', 'b', 2, 'other slot')])()
})

test('assertOneOwner(): finds a handler that began while another one of its slot was at work in a living process', () => {
  const began = judge([note('begin', 'a', 1), note('begin', 'b', 2)])
  assert.throws(began, /k 2 began in b while k 1 of slot 1 was at work in a/)
  assert.throws(judge([note('begin', 'a', 1), note('begin', 'b', 2, 'q')]), /q 2 began in b while k 1 of slot 1/)
})

test('assertOneOwner(): excuses a killed process from then on, and not before', () => {
  const notes = [note('begin', 'a', 1), note('begin', 'b', 1)]
  const beganMs = notes[1]!.atMs
  judge(notes, { a: { lostMs: beganMs, overMs: beganMs } })()
  assert.throws(judge(notes, { a: { lostMs: beganMs + 1, overMs: beganMs + 1 } }), /k 1 began in b while k 1/)
})

test('assertOneOwner(): finds a process that begins something after the end of its lease, also where nobody else is at work', () => {
  const notes = [note('begin', 'a', 1), note('end', 'a', 1)]
  const { atMs: beganMs } = notes[0]!
  assert.throws(judge(notes, { a: { lostMs: 0, overMs: beganMs } }), /k 1 began in a after the end of its lease/)
})

test('assertEffectsOnce(): finds an effect that is missing or there twice, and accepts one of an event without an answer', () => {
  assertEffectsOnce(['a', 'b', 'unknown'], ['a', 'b'])
  assert.throws(() => assertEffectsOnce(['a', 'b'], ['a', 'b', 'c']), /the effect of c is missing/)
  assert.throws(() => assertEffectsOnce(['a', 'b', 'a'], ['a', 'b']), /the effect of a is there twice/)
  assert.throws(() => assertEffectsOnce(['a', 'unknown', 'unknown'], ['a']), /the effect of unknown is there twice/)
})
