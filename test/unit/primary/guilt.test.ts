import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import {
  alwaysThere,
  Harmless,
  UNEXPLAINED_DEATHS,
  type UnexplainedDeath,
} from '../../../src/primary/supervision/guilt.ts'

const death = (...plugins: string[]): UnexplainedDeath => ({ atMs: 0, plugins: new Set(plugins) })
const nobody = (): boolean => false

test('who was there at each of the last three deaths is named, but for those that do no harm', () => {
  const deaths = [death('busy', 'rare'), death('busy', 'rare', 'other'), death('busy', 'rare')]
  assert.deepEqual(
    alwaysThere(deaths, (plugin) => plugin === 'busy'),
    ['rare'],
  )
  assert.deepEqual(alwaysThere(deaths, nobody), ['busy', 'rare'], 'they are not told apart')
})

test('fewer deaths name nobody, and one without it clears a plugin', () => {
  const deaths = Array.from({ length: UNEXPLAINED_DEATHS }, () => death('rare'))
  assert.deepEqual(alwaysThere(deaths, nobody), ['rare'])
  assert.deepEqual(alwaysThere(deaths.slice(1), nobody), [])
  assert.deepEqual(alwaysThere([...deaths, death('other')], nobody), [])
  assert.deepEqual(alwaysThere([death('other'), ...deaths], nobody), ['rare'], 'what was before does not')
})

test('a plugin does no harm when its lane is still there a look later, for a minute, and until it ends one', () => {
  const harmless = new Harmless(() => new Set(['busy']))
  const lane = {} as Lane
  harmless.look([lane], 0)
  assert.equal(harmless.isKnown('busy'), false)
  harmless.look([lane], 1000)
  assert.deepEqual([harmless.isKnown('busy'), harmless.isKnown('rare')], [true, false])
  assert.deepEqual([harmless.isHarmless('busy', 60_999), harmless.isHarmless('busy', 61_000)], [true, false])
  assert.equal(harmless.isKnown('busy'), true)
  harmless.forget('busy')
  assert.equal(harmless.isKnown('busy'), false)
})

test('what was there at the last look does not count when the lane is gone', () => {
  const harmless = new Harmless(() => new Set(['deadly']))
  for (let n = 0; n < 10; n++) harmless.look([{} as Lane], n * 1000)
  assert.equal(harmless.isKnown('deadly'), false)
})
