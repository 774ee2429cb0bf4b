import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lanes', import.meta.url))]
const LANES = 2

const post = (heddle: Heddle, event: string, payload: object) =>
  heddle
    .json('/publish', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ event, payload }),
    })
    .then(({ body }) => body.id as string)

const begun = (heddle: Heddle) => heddle.logs.filter(({ msg }) => msg === 'work begins')
const ended = (heddle: Heddle) =>
  new Set(heddle.logs.filter(({ msg }) => msg === 'work ends').map(({ event }) => event))

test('a lane that dies finishes its events, and none is begun twice', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES })
  const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => post(heddle, 'work', { n, ms: 400 })))
  await until(() => begun(heddle).length === 20, 'all begun')
  await heddle.json('/die/exit')
  await until(() => ended(heddle).size === 20, 'all ended', 30_000)
  for (const id of ids) assert.ok(ended(heddle).has(id))
  assert.equal(begun(heddle).length, 20)
  assert.equal(await heddle.stop(), 0)
})

test('a lane that dies hands events on that it does not finish in time', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  const id = await post(heddle, 'work', { n: 1, ms: 7000 })
  await until(() => begun(heddle).length === 1, 'begun')
  await heddle.json('/die/exit')
  await until(() => begun(heddle).length === 2, 'begun again', 30_000)
  await until(() => ended(heddle).size === 1, 'ended', 30_000)
  assert.ok(ended(heddle).has(id))
  assert.equal(await heddle.stop(), 0)
})
