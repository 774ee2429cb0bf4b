import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Settler } from '../../../src/primary/event-store/settler.ts'

test('a row that waits for its next attempt leaves the hand, and is in the store all the same', async () => {
  const settler = new Settler({
    write: () => Promise.resolve({ promoted: [] }),
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    log: () => assert.fail(),
  })
  const left: number[] = []
  let gone = 0
  settler.onCommitted = (seqs, count) => {
    left.push(...seqs)
    gone += count
  }
  const noted = { attempt: 2, deaths: 0, error: 'as it was told', isBegun: true, retryMs: 0 }
  settler.done(1)
  settler.note({ ...noted, seq: 2, dueMs: 1000 })
  settler.note({ ...noted, seq: 3, dueMs: 0 })
  await settler.written()
  assert.deepEqual([left, gone], [[1, 2], 1])
})

test('a change that is never taken stops no other, and is left out in the end', async () => {
  const taken: number[] = []
  const logged: string[] = []
  const settler = new Settler({
    write: async ({ noted, done }) => {
      if (noted.some(({ error }) => error === 'odd')) throw new Error('refused')
      taken.push(...noted.map(({ seq }) => seq), ...done)
      return { promoted: [] }
    },
    clock: { ...SYSTEM_CLOCK, after: (_, run) => SYSTEM_CLOCK.after(0, run) },
    chance: SYSTEM_CHANCE,
    log: (level, message) => logged.push(`${level} ${message}`),
  })
  const noted = { attempt: 2, deaths: 0, isBegun: true, retryMs: 0, dueMs: 0 }
  settler.done(1)
  settler.note({ ...noted, seq: 2, error: 'odd' })
  settler.note({ ...noted, seq: 3, error: 'usual' })
  await settler.written()
  assert.deepEqual([taken.includes(1), taken.includes(2), taken.includes(3)], [true, false, true])
  assert.equal(logged.filter((line) => line.startsWith('ERROR A change of the event store cannot be stored')).length, 1)
})

test('while nothing is taken, nothing is left out', async () => {
  let refusals = 0
  const taken: number[] = []
  const settler = new Settler({
    write: async ({ done }) => {
      if (refusals++ < 60) throw new Error('locked')
      taken.push(...done)
      return { promoted: [] }
    },
    clock: { ...SYSTEM_CLOCK, after: (_, run) => SYSTEM_CLOCK.after(0, run) },
    chance: SYSTEM_CHANCE,
    log: (level) => assert.notEqual(level, 'ERROR'),
  })
  settler.done(1)
  await settler.written()
  assert.deepEqual(taken, [1])
})
