import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixtureDomains('lanes')]

const LANES = 2
/** Longer than a lane that leaves lets its handlers settle, also on a busy machine. */
const OUTLASTS_MS = 25_000

const post = (heddle: Heddle, event: string, payload: object) =>
  heddle.post('/publish', { event, payload }).then(({ body }) => body.id as string)

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
  const id = await post(heddle, 'work', { n: 1, ms: OUTLASTS_MS })
  await until(() => begun(heddle).length === 1, 'begun')
  await heddle.json('/die/exit')
  await until(() => begun(heddle).length === 2, 'begun again', 2 * OUTLASTS_MS)
  await until(() => ended(heddle).size === 1, 'ended', 4 * OUTLASTS_MS)
  assert.ok(ended(heddle).has(id))
  assert.equal(await heddle.stop(), 0)
})

const STALL_MS = 200

test('a process that was stopped and goes on does not take its lanes for stalled', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS) } })
  for (let round = 0; round < 5; round++) {
    heddle.process.kill('SIGSTOP')
    // Time itself is what is tested here.
    await new Promise((resolve) => setTimeout(resolve, STALL_MS * 2))
    heddle.process.kill('SIGCONT')
    const { status } = await heddle.json('/slow?ms=100')
    assert.equal(status, 200)
  }
  assert.deepEqual(
    heddle.logs.filter(({ msg }) => / died: /.test(msg)),
    [],
  )
})

test('floods inside a lane meet their bounds, and nobody waits for ever', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })

  await t.test('many calls to the primary at once all end, whatever they bring back', async () => {
    const { body } = await heddle.json('/calls?count=40000&bytes=1000')
    assert.equal(body.resolved + body.rejected, 40_000)
    assert.ok(body.resolved >= 16_000, `${body.resolved} resolved`)
  })

  await t.test('a flood of large events does not shut requests out', async () => {
    await heddle.json('/flood?count=1500&bytes=60000')
    let refused = 0
    for (let n = 0; n < 60; n++) if ((await heddle.fetch('/thread')).status !== 200) refused++
    assert.equal(refused, 0)
    await until(() => heddle.logs.filter(({ msg }) => msg === 'work ends').length === 1500, 'all events', 20_000)
  })
  assert.deepEqual(
    heddle.logs.filter(({ identity, level }) => identity === 'supervisor' && level >= 50),
    [],
  )
  assert.equal(await heddle.stop(), 0)
})
