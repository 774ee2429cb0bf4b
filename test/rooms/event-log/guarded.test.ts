import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/logged', import.meta.url))]
/** Four starts on a machine that is busy. */
const DEATHS_MS = 60_000

test('an event that was in flight at three deaths of the guarded process is a dead letter', async (t) => {
  const env = { LANE_ENV: 'HOLD', HOLD: 'kill', HTTP_PORT: String(await freePort()) }
  const heddle = await startHeddle(t, { isGuarded: true, lanes: 1, domains: DOMAINS, env })
  // The process may die before it has answered.
  await post(heddle, '/orders', { id: 'bad' }).catch(() => {})
  const database = new Database(join(heddle.directory, 'service.db'), { readonly: true, timeout: 5000 })
  t.after(() => database.close())
  const letters = database.prepare('SELECT event, error FROM heddle_dead')
  await until(() => letters.all().length === 1, 'a letter', DEATHS_MS)
  assert.deepEqual(letters.all(), [
    { event: 'order.taken', error: 'The process or its thread died 3 times while it handled this event' },
  ])
  const left = database.prepare('SELECT seq FROM heddle_event')
  await until(() => left.all().length === 0, 'an empty log')
  // A process that dies soon after its start may not have written the line.
  assert.ok(heddle.logs.some(({ msg }) => msg.startsWith('The process before this one is dead')))
  assert.equal(await heddle.stop(), 0)
})
