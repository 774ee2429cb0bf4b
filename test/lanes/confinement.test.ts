import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BlackBox } from '../../src/contracts/registry.ts'
import { CIRCUIT_DEATHS } from '../../src/primary/supervision/circuit-breaker.ts'
import { folderOf } from '../support/folder.ts'
import { type Heddle, startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'
import { bystanders } from './bystanders.ts'
import { allUp, deathsIn, lanesOf } from './deadly.ts'

const DOMAINS = ['../fixtures/frameless', '../../domains'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
const CLIENTS = 8
/** Long enough to see who works without harm: lanes are looked at once a second. */
const WARM_UP_MS = 4000
/** A third of it where nothing else runs. Without confinement nobody is served for ten seconds and more. */
const GAP_MAX_MS = 3000
/** It is more than 99 % where nothing else runs: a busy machine sees deaths later than the next plugin is asked. */
const SHARE_MIN = 0.9

const guiltyIn = (heddle: Heddle) => deathsIn(heddle).map(({ guilty }) => guilty as BlackBox['guilty'])
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Lets clients of a neighbour run beside something that ends lanes, and looks at what they got. */
async function beside(heddle: Heddle, harm: () => Promise<void>): Promise<void> {
  const others = bystanders(heddle.port, '/calm', CLIENTS)
  await pause(WARM_UP_MS)
  await harm()
  const { longestGapMs, served, refused } = others
  await others.stop()
  const share = served / (served + refused)
  assert.ok(share >= SHARE_MIN, `${refused} of ${served + refused} were refused`)
  assert.ok(longestGapMs < GAP_MAX_MS, `nobody was served for ${longestGapMs} ms`)
}

test('beside a plugin whose deaths tell nothing the neighbours are served, and it is named and tried alone', {
  timeout: 120_000,
}, async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS })
  await beside(heddle, async () => {
    for (let n = 1; n <= CIRCUIT_DEATHS; n++) {
      await heddle.json('/fall-apart/microtask')
      await until(() => deathsIn(heddle).length === n, `death ${n}`)
      await allUp(heddle)
    }
  })
  const guilty = guiltyIn(heddle)
  const named = guilty.findIndex((each) => each?.plugin === 'blind.FallApart')
  assert.ok(named >= 0 && named < CIRCUIT_DEATHS, JSON.stringify(guilty))
  assert.ok(!guilty.some((each) => each?.plugin === 'calm.KeepCalm' && each.evidence !== 'last'))
  const lanes = await lanesOf(heddle)
  assert.equal(lanes.find(({ role }) => role === 'probation')!.deaths.length > 0, true, 'it was tried alone')
  assert.equal(await heddle.stop(), 0)
})

const MORTALS = 60
const EVERY_MS = 100

/** Each ends its lane soon after its answer, with its own line in the stack. */
const mortal = (n: number): string => `export default class Die${n} {
  constructor({ http }) {
    http.addEndpoint('/die/${n}', 'GET', () => {
      setTimeout(() => { throw new Error('dies') }, 5)
      return { success: true }
    })
  }
}`

test(`beside ${MORTALS} plugins that each end their lane one lane is kept for the others`, {
  timeout: 120_000,
}, async (t) => {
  const files = Object.fromEntries(Array.from({ length: MORTALS }, (_, n) => [`many/plugins/die-${n}.ts`, mortal(n)]))
  const heddle = await startHeddle(t, { domains: [...DOMAINS, await folderOf(t, files)] })
  await beside(heddle, async () => {
    for (let n = 0; n < MORTALS; n++) {
      void heddle.fetch(`/die/${n}`)
      await pause(EVERY_MS)
    }
  })
  assert.ok(deathsIn(heddle).length > 3)
  for (const guilty of guiltyIn(heddle)) assert.match(String(guilty?.plugin), /^many\.Die\d+$/)
  assert.equal(await heddle.stop(), 0)
})
