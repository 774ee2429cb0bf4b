import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { NATIVE, sleeping, someSeconds } from './native.ts'

const ends = {
  'the death of its lane': (heddle: Awaited<ReturnType<typeof startHeddle>>) => heddle.fetch('/end/throw'),
  'a reload': async (heddle: Awaited<ReturnType<typeof startHeddle>>) => heddle.process.kill('SIGHUP'),
  'the end of the process': (heddle: Awaited<ReturnType<typeof startHeddle>>) => heddle.stop(),
}
for (const [end, make] of Object.entries(ends)) {
  test(`what a plugin has started ends with ${end}, and what that has started, too`, { timeout: 90_000 }, async (t) => {
    const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1 })
    const seconds = someSeconds()
    t.after(async () => void execFileSync('sh', ['-c', `pkill -f '^sleep ${seconds}$' || true`]))
    const { data } = (await heddle.json(`/start?seconds=${seconds}`)).body
    await until(() => sleeping(seconds) === 2, 'both run')
    const [{ child_processes }] = (await heddle.json('/system/lanes')).body
    assert.deepEqual(child_processes, [{ pid: data.pid, plugin: 'fatal.EndLane', handler: 'GET /start' }])
    await make(heddle)
    await until(() => sleeping(seconds) === 0, 'both have ended', 30_000)
  })
}

test('what a lane waits for ends with it, and what that has started', {
  timeout: 90_000,
  skip: process.platform !== 'linux',
}, async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1, env: { LANE_STALL_MS: '1000' } })
  const seconds = someSeconds()
  t.after(async () => void execFileSync('sh', ['-c', `pkill -f '^sleep ${seconds}$' || true`]))
  void heddle.fetch(`/sleep/sync?seconds=${seconds}`).catch(() => {})
  await until(() => sleeping(seconds) === 2, 'both run')
  await until(() => sleeping(seconds) === 0, 'both have ended', 60_000)
})
