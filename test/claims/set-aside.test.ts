import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CRASHES_MAX } from '../../src/primary/supervision/isolation.ts'
import { allUp, deathsIn, publish, startDeadly } from '../rooms/lanes/deadly.ts'
import { until } from '../support/until.ts'

test('a plugin that crashes five lanes is disabled: 503, its events wait, it is tried again; nobody else notices', async (t) => {
  const heddle = await startDeadly(t)
  for (let n = 1; n <= CRASHES_MAX; n++) {
    assert.equal((await heddle.json('/harm/exit')).status, 500)
    await until(() => deathsIn(heddle).length === n, `death ${n}`)
    await allUp(heddle)
  }
  const refused = await heddle.json('/harm/exit')
  assert.equal(refused.status, 503)
  assert.deepEqual(refused.body, { success: false, error: 'This part of the service is stopped for a while' })
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 10)
  assert.equal((await heddle.json('/pause?ms=1')).status, 503, 'all of its routes')

  const { plugins } = (await heddle.json('/system/status')).body
  assert.equal(plugins['harm.DoHarm'].status, 'DEAD')
  assert.match(
    plugins['harm.DoHarm'].error,
    /^Disabled until .*: its handlers crashed 5 lanes in 60 s; last: process\.exit\(3\) was called \(.*do-harm\.ts:\d+:\d+\)$/,
  )
  assert.equal(plugins['peace.KeepPeace'].status, 'OK')

  const waiting = await publish(heddle, 'harm.asked', { way: 'none' })
  const neighbour = await publish(heddle, 'peace.asked', { ms: 1 })
  await until(() => heddle.logs.some(({ msg, event }) => msg === 'peace ends' && event === neighbour), 'the neighbour')
  assert.equal((await heddle.json('/peace')).status, 200)
  assert.equal((await heddle.json('/system/health/ready')).status, 200)
  assert.ok(!heddle.logs.some(({ msg }) => msg === 'asked'), 'its event waits')

  await until(() => heddle.logs.some(({ msg, event }) => msg === 'asked' && event === waiting), 'its event', 30_000)
  assert.equal((await heddle.json('/pause?ms=1')).status, 200, 'it is tried again')
  assert.equal((await heddle.json('/system/status')).body.plugins['harm.DoHarm'].status, 'OK')

  // On trial one more death is enough, and the pause is longer.
  assert.equal((await heddle.json('/harm/exit')).status, 500)
  const again = await until(async () => {
    const answer = await heddle.json('/pause?ms=1')
    return answer.status === 503 && answer.headers.get('retry-after') !== '1' ? answer : undefined
  }, 'the second pause')
  const longer = Number(again.headers.get('retry-after'))
  assert.ok(longer > 10 && longer <= 20, `${longer} s`)

  // New code is not held responsible for the old.
  heddle.process.kill('SIGHUP')
  await until(async () => (await heddle.json('/pause?ms=1')).status === 200, 'the reload', 30_000)
  assert.equal(await heddle.stop(), 0)
})
