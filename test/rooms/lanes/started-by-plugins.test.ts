/** Holds that processes and threads that a plugin starts are shown with it, and end with their lane. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { lanesOf } from './deadly.ts'
import { NATIVE, sleeping, someSeconds } from './native.ts'

const THREADS = 8
const OPTIONS = { skip: process.platform !== 'linux' }

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

const ENDS: Record<string, (heddle: Heddle) => unknown> = {
  'the death of its lane': (heddle) => heddle.fetch('/end/throw'),
  'a reload': (heddle) => heddle.process.kill('SIGHUP'),
  'the end of the process': (heddle) => heddle.stop(),
}
for (const [end, make] of Object.entries(ENDS)) {
  test(
    `what a plugin has started is shown, and ends with ${end}, and what that has started, too`,
    OPTIONS,
    async (t) => {
      const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1 })
      const before = tasksOf(heddle)
      const seconds = someSeconds(t)
      const { data } = (await heddle.json(`/start?seconds=${seconds}`)).body
      await heddle.fetch(`/starve?threads=${THREADS}&ms=90000`)
      // A thread of the start may have been counted that has ended since.
      const started = async () => (await lanesOf(heddle))[0]?.threads[0]?.count
      await until(async () => sleeping(seconds) === 2 && (await started()) === THREADS, 'all run')
      const [lane] = await lanesOf(heddle)
      const { started_at, ...child } = lane!.child_processes[0]!
      assert.ok(Math.abs(Date.now() - Date.parse(started_at!)) < 60_000)
      const file = join(NATIVE[0]!, 'fatal/plugins/end-lane.plugin.ts')
      const starter = { plugin: 'fatal.EndLane', handler: 'GET /start', file }
      assert.deepEqual(child, { pid: data.pid, ...starter, command: 'sh', descendants: 2 })
      assert.equal(lane!.child_processes.length, 1)
      assert.deepEqual(lane!.threads, [{ plugin: 'fatal.EndLane', handler: 'GET /starve', count: THREADS }])
      await make(heddle)
      await until(() => sleeping(seconds) === 0, 'the processes have ended', 60_000)
      if (heddle.process.exitCode !== null) return
      // A lane may have come beside the old one.
      await until(() => tasksOf(heddle) < before + THREADS / 2, 'the threads have ended', 60_000)
      await until(async () => (await lanesOf(heddle)).every(({ threads }) => threads.length === 0), 'none is shown')
    },
  )
}

test('what a lane waits for ends with it, and what that has started', OPTIONS, async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1, env: { LANE_STALL_MS: '1000' } })
  const seconds = someSeconds(t)
  void heddle.fetch(`/sleep/sync?seconds=${seconds}`).catch(() => {})
  await until(() => sleeping(seconds) === 2, 'both run')
  await until(() => sleeping(seconds) === 0, 'both have ended', 60_000)
})
