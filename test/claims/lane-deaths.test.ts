import { describe } from 'node:test'
import { shareDeadly } from '../rooms/lanes/deadly.ts'
import { GREW, MEMORY_ENV, STALL_MS, testWay, type Way } from '../rooms/lanes/ended-ways.ts'

/** As many as one service survives without a pause: with the last of them the plugin is disabled. */
const AT_ONCE: readonly Way[] = [
  ['spin', 'stalled', 504, /stood still for \d+ ms/, 'for (;;) leak.kept.length = 0'],
  ['regex', 'stalled', 504, /stood still/, '/^(a+)+$/'],
  ['throw', 'crashed', 500, /^thrown by a timer$/, "throw new TypeError('thrown by a timer')"],
  ['reject', 'crashed', 500, /^rejected by nobody$/, "Promise.reject(new Error('rejected by nobody'))"],
  ['exit', 'exited', 500, /process\.exit\(3\) was called/, 'return process.exit(3)'],
]
const BY_MEMORY: readonly Way[] = [
  ['heap', 'memory', 500, GREW, 'leak.kept.push({ n: leak.kept.length'],
  ['buffers', 'memory', 500, GREW, 'Buffer.alloc(1 << 20, 1)'],
]

describe('in a process that does not wait long for a lane', () => {
  const heddleOf = shareDeadly({ env: { LANE_STALL_MS: String(STALL_MS) } })
  for (const way of AT_ONCE) testWay(heddleOf, way)
})

describe('in a process that bounds the memory of a lane', () => {
  const heddleOf = shareDeadly({ env: MEMORY_ENV })
  for (const way of BY_MEMORY) testWay(heddleOf, way)
})
