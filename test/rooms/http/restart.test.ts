import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'

test('a process that ends with open connections leaves its port to the next one at once', async (t) => {
  const env = { HTTP_PORT: String(await freePort()) }
  const first = await startHeddle(t, { lanes: 1, env })
  // The server closes it first: its end of the connection stays in TIME_WAIT.
  const stream = await first.fetch('/system/traces/stream')
  assert.equal(await first.stop(), 0)
  await stream.body?.cancel().catch(() => {})
  const second = await startHeddle(t, { lanes: 1, env })
  assert.equal((await second.json('/hello/again')).status, 200)
})

test('a port that somebody listens on is refused', async (t) => {
  const first = await startHeddle(t, { lanes: 1 })
  const { child, errors } = await spawnHeddle(t, { lanes: 1, env: { HTTP_PORT: String(first.port) } })
  const [code] = await once(child, 'exit')
  assert.equal(code, 1)
  assert.match(errors.join(''), new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${first.port}`))
  assert.equal((await first.json('/hello/still')).status, 200)
})
