import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lanes', import.meta.url))]

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
