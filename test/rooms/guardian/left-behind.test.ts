import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { NATIVE, sleeping, someSeconds } from '../lanes/native.ts'
import { startGuarded } from './guarded.ts'

test('what plugins have started ends with a process that is gone at once, and the next one serves', {
  timeout: 120_000,
  skip: process.platform !== 'linux',
}, async (t) => {
  const heddle = await startGuarded(t, { LANE_STALL_MS: '60000' }, [NATIVE[0]!])
  const seconds = someSeconds()
  t.after(async () => void execFileSync('sh', ['-c', `pkill -f '^sleep ${seconds}$' || true`]))
  const pid = await heddle.pid()
  // A process and one that it has started, one with an environment of its own, and one that the lane waits for.
  for (const path of ['/start', '/sleep/bare']) await heddle.json(`${path}?seconds=${seconds}`)
  void heddle.fetch(`/sleep/sync?seconds=${seconds}`).catch(() => {})
  await until(() => sleeping(seconds) === 5, 'all run')
  process.kill(pid, 'SIGKILL')
  await until(() => sleeping(seconds) === 0, 'all have ended', 30_000)
  assert.notEqual(await heddle.pid(pid), pid)
})
