import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { startLoad } from '../../support/load.ts'
import { freePort } from '../../support/port.ts'
import { until } from '../../support/until.ts'

/** About ten of each client. */
const STEADY_ANSWERS = 300

test('a port that processes share', async (t) => {
  const port = await freePort()
  const env = { HTTP_REUSE_PORT: 'true', HTTP_PORT: String(port) }
  const first = await startHeddle(t, { lanes: 1, env })
  const second = await startHeddle(t, { lanes: 1, env })

  await t.test(
    'of two processes on one port one stops under load, and its clients go on with the other',
    async (step) => {
      const load = startLoad({ port, path: '/hello/load', keepAlive: 32, everyMs: 30 })
      step.after(() => load.stop())
      await until(() => load.answered > STEADY_ANSWERS, 'a steady load', 60_000)
      assert.equal(await first.stop(), 0)
      const answered = load.answered
      await until(() => load.answered > answered + STEADY_ANSWERS, 'a steady load', 60_000)
      await load.stop()
      assert.deepEqual(load.failures, [])
      assert.ok(load.closedByAnswer > 0, 'every connection was with the other process from the beginning')
    },
  )

  await t.test('a port that is shared refuses a process that was not told to share', async (step) => {
    const { child, errors } = await spawnHeddle(step, { lanes: 1, env: { HTTP_PORT: String(port) } })
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 1)
    assert.match(errors.join(''), /the port is taken by/)
    assert.equal(await second.stop(), 0)
  })
})
