import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { ThreadClock, type ThreadTimes, tasksOf, timesOf } from '../../../src/core/schedule/thread-clock.cjs'

const OPTIONS = { skip: tasksOf('self') === null && 'the system does not report on threads' }
const AT_REST: ThreadTimes = { state: 'S', cpuMs: 100, waitedMs: 50, pageReads: 3 }

/** Own time of a thread that goes through these readings, 100 ms apart. */
function ownOf(...readings: (Partial<ThreadTimes> | null)[]): number {
  const left = [AT_REST, ...readings.map((reading) => reading && { ...AT_REST, ...reading })]
  const clock = new ThreadClock(() => left.shift()!)
  clock.pass(0)
  for (const _ of readings) clock.pass(100)
  return clock.ms
}

const CASES: [what: string, own: number, ...readings: (Partial<ThreadTimes> | null)[]][] = [
  ['a thread that blocks', 200, {}, {}],
  ['a thread that computes', 200, { state: 'R', cpuMs: 200 }, { state: 'R', cpuMs: 300 }],
  ['a thread that waits for a core', 0, { state: 'R' }, { state: 'R' }],
  ['a thread that gets a tenth of a core', 20, { state: 'R', cpuMs: 110 }, { state: 'R', cpuMs: 120, waitedMs: 140 }],
  ['a thread that has waited for a core and then blocks', 100, { waitedMs: 150 }, { waitedMs: 150 }],
  ['a thread whose wait is counted when it is over', 0, { state: 'R' }, { state: 'R' }, { waitedMs: 350 }],
  ['a thread that somebody has stopped', 0, { state: 'T' }, { state: 't' }],
  ['a thread that waits for a disk', 100, { state: 'D' }],
  ['a thread whose pages are read back', 0, { state: 'D', pageReads: 9 }],
  ['a thread of which nothing is known', 100, null],
]
for (const [what, own, ...readings] of CASES)
  test(`ThreadClock: ${what} has ${own} ms of its own in ${readings.length * 100} ms`, () =>
    assert.equal(ownOf(...readings), own))

test('ThreadClock: all CPU time counts, however short the watcher was awake', () => {
  const left = [AT_REST, { ...AT_REST, state: 'R', cpuMs: 600 }]
  const clock = new ThreadClock(() => left.shift()!)
  clock.pass(0)
  assert.equal(clock.pass(40), 500)
  assert.equal(clock.cpuMs, 500)
})

test('timesOf(): reports CPU time, and whether a process is stopped', OPTIONS, async (t) => {
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("."); for (;;);'])
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const folder = `${tasksOf(child.pid!)}/${child.pid}`
  const soon = () => new Promise((resolve) => setTimeout(resolve, 10))
  const before = timesOf(folder)!
  while (timesOf(folder)!.cpuMs < before.cpuMs + 50) await soon()
  assert.equal(timesOf(folder)!.state, 'R')
  child.kill('SIGSTOP')
  while (timesOf(folder)!.state !== 'T') await soon()
})

test('timesOf(): is null for a thread that has ended', () => {
  assert.equal(timesOf('/proc/self/task/0'), null)
})

test('looks at a thread take no memory of their own', OPTIONS, () => {
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < 50; n++) timesOf('/proc/thread-self')
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000)
})
