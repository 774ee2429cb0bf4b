import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { steadyMs } from '../../../src/core/schedule/clock.ts'
import { timesOfThreads, together } from '../../../src/core/schedule/thread-clock.cjs'
import { ThreadsTime } from '../../../src/core/schedule/waiting.ts'

const SPINS = `require('node:worker_threads').parentPort.postMessage(0); for (;;);`
const BLOCKS = `require('node:worker_threads').parentPort.postMessage(0); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`
const LONG_MS = 60_000

const othersCpuMs = (): number =>
  together([...timesOfThreads()].filter(([task]) => task !== process.pid).map(([, times]) => times))!.cpuMs

test('ThreadsTime: what threads compute and block for counts, and all waits have it together', async (t) => {
  for (const code of [SPINS, BLOCKS]) {
    const worker = new Worker(code, { eval: true })
    t.after(() => worker.terminate())
    await new Promise((resolve) => worker.once('message', resolve))
    const time = new ThreadsTime(300, LONG_MS)
    let looks = 0
    await time.until(() => looks++ === 2)
    assert.equal(looks, 3, 'what holds is not waited for')
    const [startedMs, cpuMs] = [steadyMs(), othersCpuMs()]
    await time.until(() => false)
    if (code === SPINS) assert.ok(othersCpuMs() - cpuMs >= 200, 'a thread that computes has had a core')
    assert.ok(steadyMs() - startedMs >= 200)
    await time.until(() => looks++ < 0)
    assert.ok(looks <= 4, 'the time is over')
    await worker.terminate()
  }
})

test('ThreadsTime: waits by the clock no longer than it may', async () => {
  const startedMs = steadyMs()
  await new ThreadsTime(LONG_MS, 100).until(() => false)
  assert.ok(steadyMs() - startedMs < LONG_MS / 2)
})
