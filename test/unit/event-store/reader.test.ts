import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { Cursor } from '../../../src/primary/event-store/cursor.ts'
import { Reader } from '../../../src/primary/event-store/reader.ts'
import type { StoredDelivery } from '../../../src/primary/event-store/store.ts'
import { HUB_MAX_PENDING_BYTES } from '../../../src/primary/events/queue-budget.ts'
import { until } from '../../support/until.ts'

const GROUPS = 20
const ROWS = 64
const MIB = 1 << 20
const payload = 'x'.repeat(MIB)

const rowOf = (group: number, n: number): StoredDelivery => ({
  seq: group * ROWS + n,
  place: group * ROWS + n,
  thread: 1,
  event: {
    id: `evt_${n}`,
    parentId: null,
    ancestors: '',
    event: 'large',
    emitter: 'shop',
    requestId: null,
    key: null,
    trace: '',
    payloadKeys: '',
    timestampMs: 0,
    delayMs: 0,
    ttlMs: 0,
    unique: null,
    shares: '',
    seq: 0,
    subscriber: 0,
    attempt: 0,
    beginBy: 0,
    payload,
  },
  expiresMs: 0,
  attempt: 1,
  deaths: 0,
  error: '',
  isBegun: false,
  retryMs: 0,
  crashes: 0,
})

test('many groups with large payloads leave the hub its room, each has one at least, and all are given in the end', async () => {
  const inHand: { cursor: Cursor; seq: number }[] = []
  const given = new Set<number>()
  let reads = 0
  const reader = new Reader({
    store: {
      readGroup: (group, after, limit) => {
        reads++
        const rows = Array.from({ length: ROWS }, (_, n) => rowOf(group, n))
        return { rows: rows.filter(({ place }) => place > after).slice(0, limit), readTo: 0 }
      },
      nextShares: () => [],
      readShares: () => [],
      passShare: () => 0,
      sharesOfKeys: () => [],
      takeTurns: () => {},
      readKey: () => [],
    },
    clock: SYSTEM_CLOCK,
    maxQueue: 100_000,
    isInHand: () => false,
    isPaused: () => false,
    isSuspect: () => false,
    note: (row) => Promise.resolve(row),
    untried: () => {},
    isTried: () => true,
    give: (cursor, { seq }) => {
      given.add(seq)
      inHand.push({ cursor, seq })
      return true
    },
    onMalformed: () => assert.fail(),
    report: (message) => assert.fail(message),
  })
  const cursors = Array.from({ length: GROUPS }, (_, n) =>
    reader.add({ id: n + 1, event: 'large', name: `group ${n}`, kind: 'group' }),
  )
  reader.open()
  const isQuiet = async (): Promise<boolean> => {
    const before = reads
    await new Promise((resolve) => setImmediate(resolve))
    return reads === before
  }
  for (;;) {
    await until(async () => (await isQuiet()) && (await isQuiet()), 'nothing more is read')
    assert.ok(reader.load.bytes <= HUB_MAX_PENDING_BYTES / 2 + GROUPS * MIB, `${reader.load.bytes} bytes`)
    const left = inHand.splice(0)
    if (left.length === 0) break
    if (given.size < GROUPS * ROWS) assert.ok(cursors.some((each) => each.inHand > 0))
    for (const { cursor, seq } of left) {
      reader.rowLeft(cursor, MIB, null)
      reader.gone(seq, cursor, '', null)
    }
  }
  assert.equal(given.size, GROUPS * ROWS)
  reader.end()
})

test('what comes back goes before the rest of its key, which may be read at this moment', async () => {
  const keyed = (n: number): StoredDelivery => {
    const row = rowOf(0, n)
    return { ...row, event: { ...row.event, key: 'k', payload: '{}' } }
  }
  const rows = [keyed(1)]
  const given: number[] = []
  let slow = Promise.resolve()
  const pageOf = async (after: number) => {
    const page = rows.filter(({ place }) => place > after)
    await slow
    return page
  }
  const reader = new Reader({
    store: {
      readGroup: async (_, after) => ({ rows: await pageOf(after), readTo: 0 }),
      nextShares: () => [],
      readShares: () => [],
      passShare: () => 0,
      sharesOfKeys: () => [],
      takeTurns: () => {},
      readKey: (_, __, after) => pageOf(after),
    },
    clock: SYSTEM_CLOCK,
    maxQueue: 100_000,
    isInHand: () => false,
    isPaused: () => false,
    isSuspect: () => false,
    note: (row) => Promise.resolve(row),
    untried: () => {},
    isTried: () => true,
    give: (_, { seq }) => given.push(seq) > 0,
    onMalformed: () => assert.fail(),
    report: (message) => assert.fail(message),
  })
  const cursor = reader.add({ id: 1, event: 'large', name: 'group', kind: 'group' })
  reader.open()
  await until(() => given.length === 1, 'the first')
  let goOn = () => {}
  slow = new Promise((resolve) => {
    goOn = resolve
  })
  rows.push(keyed(2))
  reader.rang('large')
  await new Promise((resolve) => setImmediate(resolve))
  reader.rowLeft(cursor, 2, 'k')
  reader.gone(1, cursor, '', null)
  reader.back(1, 1, 'k')
  goOn()
  await until(() => given.length === 3, 'both')
  assert.deepEqual(given, [1, 1, 2])
  reader.end()
})

test('a paused group is not read, whatever rings, and is read from its first row when it is resumed', async () => {
  let isPaused = true
  const given: number[] = []
  let reads = 0
  const reader = new Reader({
    store: {
      readGroup: async (group, after, limit) => {
        reads++
        const rows = Array.from({ length: 3 }, (_, n) => rowOf(group, n))
        return { rows: rows.filter(({ place }) => place > after).slice(0, limit), readTo: 0 }
      },
      readKey: () => [],
      nextShares: () => [],
      readShares: () => [],
      passShare: () => 0,
      sharesOfKeys: () => [],
      takeTurns: () => {},
    },
    clock: SYSTEM_CLOCK,
    maxQueue: 100_000,
    isInHand: (seq) => given.includes(seq),
    isPaused: () => isPaused,
    isSuspect: () => false,
    note: (row) => Promise.resolve(row),
    untried: () => {},
    isTried: () => true,
    give: (_, { seq }) => given.push(seq) > 0,
    onMalformed: () => assert.fail(),
    report: (message) => assert.fail(message),
  })
  reader.add({ id: 1, event: 'e', name: 'g', kind: 'group' })
  reader.open()
  reader.rang('e')
  reader.rangAll()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([reads, given.length], [0, 0])
  isPaused = false
  reader.resume(1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(given.length, 3)
})
