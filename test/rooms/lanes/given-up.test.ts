import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { NATIVE } from './native.ts'

test('clients that leave early pile up no work: what their handlers hold is refused to others until they have settled', async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1, env: { LANE_MAX_INFLIGHT: '2' } })
  const leave = () => heddle.fetch('/wait?ms=3000', { signal: AbortSignal.timeout(300) }).catch(() => null)
  const good = async () => (await heddle.fetch('/good')).status
  await until(async () => {
    await Promise.all([leave(), leave()])
    return (await good()) === 503
  }, 'no place is left')
  await until(async () => (await good()) === 200, 'they have settled')
  assert.equal(await heddle.stop(), 0)
})
