import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import { Watchdog, type WatchdogOptions } from '../../../src/primary/supervision/watchdog.ts'

const GIB = 2 ** 30

/** A lane whose loop stands still, beside threads that have so much memory. */
function standingStill(otherBytes: () => number): Watchdog {
  const heartbeat = { beats: 1, threadId: 0, cpuMs: null, share: () => null, heapBytes: 0, externalBytes: 0 }
  const lane = { state: 'ready', heartbeat } as unknown as Lane
  const settings = { laneMemoryMb: 64, laneStallMs: 10_000 }
  const watchdog = new Watchdog(lane, {
    settings,
    otherThreadsBytes: otherBytes,
    isQuiet: () => false,
  } as unknown as WatchdogOptions)
  for (let n = 0; n < 5; n++) assert.equal(watchdog.check(0, 20), null)
  assert.equal(watchdog.isResponsive, false)
  return watchdog
}

test('a lane that stands still while a thread ends is not taken for who has its memory', () => {
  let bytes = GIB
  const watchdog = standingStill(() => bytes)
  bytes = 0
  assert.equal(watchdog.check(0, 20), null)
})

test('what the process has more while a lane stands still, and no other thread has, is the lane’s', () => {
  const watchdog = standingStill(() => 0)
  const grown = Buffer.alloc(200 << 20, 1)
  assert.equal(watchdog.check(0, 20), 'memory')
  assert.equal(grown.length, 200 << 20)
})
