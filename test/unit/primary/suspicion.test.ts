import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import {
  binomialTail,
  type Handlers,
  Sightings,
  Suspicion,
  TRIAL_AFTER,
} from '../../../src/primary/supervision/guilt.ts'

const handlers = (...plugins: string[]): Handlers =>
  new Map(plugins.map((plugin) => [plugin, { plugin, handler: `GET /${plugin}` }]))

/** Sightings of a lane that lives: `seen` tells what is there at each look. */
function watched(looks: number, seen: (look: number) => Handlers): Sightings {
  let look = 0
  const sightings = new Sightings(() => seen(look))
  const lane = {} as Lane
  for (; look <= looks; look++) sightings.look([lane])
  return sightings
}

const near = (actual: number, expected: number): void => assert.ok(Math.abs(actual - expected) < 1e-9, `${actual}`)

test('the tail of the binomial distribution', () => {
  near(binomialTail(5, 0, 0.3), 1)
  near(binomialTail(1, 1, 0.25), 0.25)
  near(binomialTail(3, 3, 0.1), 0.001)
  near(binomialTail(4, 3, 0.5), 5 / 16)
})

test('what is there at each death and seldom otherwise is named, and not what always runs', () => {
  const suspicion = new Suspicion(
    watched(30, (look) => (look % 10 === 0 ? handlers('busy', 'rare') : handlers('busy'))),
  )
  assert.equal(suspicion.unexplained(handlers('busy', 'rare'), 0), null)
  const suspects = [1, 2].map((n) => suspicion.unexplained(handlers('busy', 'rare'), n))
  assert.deepEqual(suspects.at(-1), { plugin: 'rare', handler: 'GET /rare', isNamed: true })
})

test('one death more without it clears a plugin, and one with it does not', () => {
  const sightings = watched(30, () => handlers('busy'))
  const suspicion = new Suspicion(sightings)
  suspicion.unexplained(handlers('busy', 'rare'), 0)
  assert.equal(suspicion.unexplained(handlers('busy', 'rare'), 1)?.isNamed, true)
  for (let n = 2; n < 12; n++) suspicion.unexplained(handlers('busy'), n)
  assert.equal(suspicion.unexplained(handlers('busy'), 12)?.plugin, 'busy', 'it is not even there')
})

test('two that are always there together are not told apart: after some deaths one is tried alone, then the other', () => {
  const suspicion = new Suspicion(watched(30, () => handlers('busy')))
  const died = (n: number) => suspicion.unexplained(handlers('busy', 'one', 'two'), n)
  for (let n = 1; n < TRIAL_AFTER; n++) assert.equal(died(n), null)
  const first = died(TRIAL_AFTER)!
  assert.equal(first.isNamed, false)
  suspicion.acquit(first.plugin)
  const second = died(TRIAL_AFTER + 1)!
  assert.deepEqual([first.plugin, second.plugin].sort(), ['one', 'two'])
})

test('a plugin is known when it was seen in lanes that went on, until it ends one', () => {
  const sightings = watched(5, () => handlers('busy'))
  assert.equal(sightings.isKnown('busy'), true)
  assert.equal(sightings.isKnown('rare'), false)
  sightings.forget('busy')
  assert.equal(sightings.isKnown('busy'), false)
})

test('what was there at the last look does not count when the lane is gone', () => {
  const sightings = new Sightings(() => handlers('deadly'))
  for (let n = 0; n < 10; n++) sightings.look([{} as Lane])
  assert.equal(sightings.isKnown('deadly'), false)
  assert.equal(sightings.shareOf('deadly'), 1 / 2)
})
