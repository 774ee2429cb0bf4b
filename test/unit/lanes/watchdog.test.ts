import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Watcher } from '../../../src/core/schedule/thread-clock.cjs'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import { Watchdog, type WatchdogOptions } from '../../../src/primary/supervision/watchdog.ts'

const GIB = 2 ** 30
const TICK = { elapsedMs: 20, awakeMs: 20 } as Watcher

/** A lane whose loop stands still, beside threads that have so much memory. */
function standingStill(otherBytes: () => number): Watchdog {
  const heartbeat = { beats: 1, threadId: 0, cpuMs: null, times: () => null, heapBytes: 0, externalBytes: 0 }
  const lane = { state: 'ready', heartbeat } as unknown as Lane
  const settings = { laneMemoryMb: 64, laneStallMs: 10_000 }
  const watchdog = new Watchdog(lane, {
    settings,
    startingTimes: () => null,
    otherThreadsBytes: otherBytes,
  } as unknown as WatchdogOptions)
  for (let n = 0; n < 5; n++) assert.equal(watchdog.check(0, TICK, false), null)
  assert.equal(watchdog.isResponsive, false)
  return watchdog
}

test('a lane that stands still while a thread ends is not taken for who has its memory', () => {
  let bytes = GIB
  const watchdog = standingStill(() => bytes)
  bytes = 0
  assert.equal(watchdog.check(0, TICK, false), null)
})

test('what the process has more while a lane stands still, and no other thread has, is the lane’s', () => {
  const watchdog = standingStill(() => 0)
  const grown = Buffer.alloc(200 << 20, 1)
  assert.equal(watchdog.check(0, TICK, false), 'memory')
  assert.equal(grown.length, 200 << 20)
})

test('a lane that stands still while a debugger is attached is not stalled, and its time begins anew afterwards', () => {
  const watchdog = standingStill(() => 0)
  const ticks = (count: number, isDebugged: boolean): unknown[] =>
    Array.from({ length: count }, () => watchdog.check(0, TICK, isDebugged)).filter((reason) => reason !== null)
  assert.deepEqual(ticks(1000, true), [])
  assert.equal(watchdog.isResponsive, false, 'others take its work')
  watchdog.beginAnew()
  assert.deepEqual(ticks(10_000 / 20 - 1, false), [])
  assert.deepEqual(ticks(1, false), ['stalled'])
})
