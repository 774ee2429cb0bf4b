import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startHeddle, until } from '../support/heddle.ts'
import { ask, assertFailure, assertOurs, headerOf, jsonOf, RawConnection, requestText } from './raw-client.ts'
import { SERVING } from './shared-process.ts'

it('answers 503 with Retry-After when no lane has room, and serves again when one has', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1, env: { LANE_MAX_INFLIGHT: '4' } })
  const hanging = await Promise.all(Array.from({ length: 4 }, () => RawConnection.open(heddle.port)))
  for (const connection of hanging) await connection.send(requestText('GET', '/w/hang/full'))
  await until(async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/full:started')).data === 4, 'the lane is full')
  const refused = await ask(heddle.port, 'GET', '/w/echo')
  assertFailure(refused, 503, 'The service is overloaded')
  assert.match(headerOf(refused, 'retry-after')!, /^\d+$/)
  for (const connection of hanging) connection.drop()
  await until(async () => (await ask(heddle.port, 'GET', '/w/echo')).status === 200, 'the lane has room again')
  assert.equal(await heddle.stop(), 0)
})

it('drains: answers what it has, refuses what comes, ends with code 0', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1 })
  const idle = await RawConnection.open(heddle.port)
  const busy = await RawConnection.open(heddle.port)
  await idle.send(requestText('GET', '/w/echo'))
  assertOurs(await idle.response())
  await busy.send(requestText('GET', '/w/overtime/drain'))
  await until(async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/drain:started')).data === 1, 'it runs')
  const stopped = heddle.stop()
  await until(() => heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the drain')
  await idle.send(requestText('GET', '/w/echo'))
  const refused = await idle.response()
  assertFailure(refused, 503, 'The service is shutting down')
  assert.match(headerOf(refused, 'retry-after')!, /^\d+$/)
  await idle.closed(1_000)
  const finished = await busy.response()
  assertFailure(finished, 504, 'The handler did not answer in time')
  assert.equal(headerOf(finished, 'connection')?.toLowerCase(), 'close')
  await busy.closed(1_000)
  assert.equal(await stopped, 0)
})
