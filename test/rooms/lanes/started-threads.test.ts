import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { lanesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

const THREADS = 8
/** Threads of a process; without those of libuv's pool, which begin with the first call that needs one. */
function tasksOf(heddle: Heddle): number {
  const folder = `/proc/${heddle.process.pid}/task`
  const isOfPool = (task: string): boolean => {
    try {
      return readFileSync(`${folder}/${task}/comm`, 'latin1').startsWith('libuv')
    } catch {
      return true
    }
  }
  return readdirSync(folder).filter((task) => !isOfPool(task)).length
}

const ends = {
  'the death of its lane': (heddle: Heddle) => heddle.fetch('/end/throw'),
  'a reload': async (heddle: Heddle) => heddle.process.kill('SIGHUP'),
}
for (const [end, make] of Object.entries(ends)) {
  test(`threads that a plugin has started end with ${end}`, {
    timeout: 120_000,
    skip: process.platform !== 'linux',
  }, async (t) => {
    const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1 })
    const before = tasksOf(heddle)
    await heddle.fetch(`/starve?threads=${THREADS}&ms=90000`)
    await until(() => tasksOf(heddle) >= before + THREADS, 'all run')
    await make(heddle)
    // A lane may have come beside the old one.
    await until(() => tasksOf(heddle) < before + THREADS / 2, 'they have ended', 60_000)
    await until(async () => (await lanesOf(heddle)).every(({ threads }) => threads.length === 0), 'none is shown')
  })
}

test('who has started threads is shown, and named in the log when the cores go to them', {
  timeout: 120_000,
  skip: process.platform !== 'linux',
}, async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1 })
  await heddle.fetch(`/starve?threads=${THREADS}&ms=60000`)
  const [lane] = await lanesOf(heddle)
  assert.deepEqual(lane?.threads, [{ plugin: 'fatal.EndLane', handler: 'GET /starve', count: THREADS }])
  const told = () => heddle.logs.find(({ msg }) => msg.startsWith('Threads and processes that plugins have started'))
  await until(() => told() !== undefined, 'the log names them', 60_000)
  assert.match(told()!.msg, /use [\d.]+ of \d+ cores \(fatal\.EndLane, GET \/starve: 8\)/)
})
