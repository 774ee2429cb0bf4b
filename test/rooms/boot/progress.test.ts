import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Progress } from '../../../src/core/schedule/progress.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { spawnHeddle } from '../../support/heddle.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

test('Progress: says again and again what is waited for, until it ends', async (t) => {
  const said: string[] = []
  const progress = new Progress('Starting', (message) => said.push(message), { everyMs: 5 })
  t.after(() => progress.end())
  progress.step = 'one thing'
  await until(() => said.length > 0, 'the first line')
  progress.step = () => 'another'
  await until(() => said.at(-1)?.includes('another'), 'the next line')
  assert.match(said[0]!, /^Starting for \d+ s: waits for one thing$/)
  progress.end()
})

test('a start and a stop that take long say what they wait for', async (t) => {
  const file = join(temporaryFolder(t), 'go')
  const { child, logs } = await spawnHeddle(t, {
    domains: [fixture('patient')],
    lanes: 1,
    env: { PATIENT_FILE: file, LANE_ENV: 'PATIENT_FILE', SHUTDOWN_TIMEOUT_MS: '60000' },
  })
  const said = (pattern: RegExp) => until(() => logs.find(({ msg }) => pattern.test(msg)), String(pattern), 60_000)
  await said(/^Starting for \d+ s: waits for lane 0 to boot .*patient\/waiting\/domain\.ts$/)
  await writeFile(file, '')
  const { msg } = await said(/^Serving on /)
  void fetch(`${msg.slice('Serving on '.length)}/late?ms=13000`).catch(() => {})
  await until(async () => (await fetch(`${msg.slice('Serving on '.length)}/late?ms=0`)).ok, 'it answers')
  const ended = once(child, 'close')
  child.kill('SIGTERM')
  await said(/^Stopping for \d+ s: waits for .*GET \/late/)
  assert.equal((await ended)[0], 0)
})
