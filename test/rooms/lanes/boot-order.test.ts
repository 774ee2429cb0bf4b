import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const SLOW_BOOT = fileURLToPath(new URL('../../fixtures/slow-boot', import.meta.url))

test('no more lanes boot at a time than there are cores, and all are up when it serves', async (t) => {
  const cores = availableParallelism()
  const lanes = cores + 2
  const { logs } = await startHeddle(t, { domains: [SLOW_BOOT], lanes })
  const said = () => logs.filter(({ msg }) => /^boot (?:begins|ends)$/.test(msg))
  await until(() => said().length === 2 * lanes, 'all have booted')
  // At equal times an end comes first.
  const steps = said().sort((a, b) => Number(a.at) - Number(b.at) || (b.msg < a.msg ? -1 : 1))
  let booting = 0
  let most = 0
  for (const { msg } of steps) {
    booting += msg === 'boot begins' ? 1 : -1
    most = Math.max(most, booting)
  }
  assert.ok(most <= cores, `${most} lanes booted at once on ${cores} cores`)
})
