import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMetricsRing,
  METRICS_SLOTS,
  MetricsFeed,
  MetricsRing,
  type RawMetric,
} from '../../../src/transport/memory/metrics-ring.ts'
import { createNameTable, NAMES_MAX, NameTable } from '../../../src/transport/memory/name-table.ts'
import { createStatusTable, STATUS_DEAD, STATUS_OK, StatusTable } from '../../../src/transport/memory/words.ts'

function readAll(ring: MetricsRing, from: number, to: number): { seen: RawMetric[]; missed: number } {
  const seen: RawMetric[] = []
  const missed = ring.read(from, to, (metric) => seen.push(metric))
  return { seen, missed }
}

test('a metric is read as it was written', () => {
  const ring = new MetricsRing(createMetricsRing())
  ring.write(1023, true, 1.25, 1_700_000_000_000.5, 7)
  ring.write(0, false, 0, 0, 0)
  const { seen, missed } = readAll(ring, 0, ring.cursor)
  assert.equal(missed, 0)
  assert.deepEqual(seen, [
    { callNumber: 1023, failed: true, refused: false, durationMs: 1.25, endedMs: 1_700_000_000_000.5, threadNumber: 7 },
    { callNumber: 0, failed: false, refused: false, durationMs: 0, endedMs: 0, threadNumber: 0 },
  ])
})

test('the oldest metrics give way, and a reader learns how many it missed', () => {
  const ring = new MetricsRing(createMetricsRing())
  for (let n = 0; n < METRICS_SLOTS + 10; n++) ring.write(n % 1000, false, n, n, 0)
  const { seen, missed } = readAll(ring, 0, ring.cursor)
  assert.equal(missed, 10)
  assert.equal(seen.length, METRICS_SLOTS)
  assert.deepEqual([seen[0]!.durationMs, seen.at(-1)!.durationMs], [10, METRICS_SLOTS + 9])
})

test('the last metrics are read across the end of the 32-bit counter', () => {
  const memory = createMetricsRing()
  new Int32Array(memory)[0] = -5
  const ring = new MetricsRing(memory)
  const from = ring.cursor
  assert.equal(from, 2 ** 32 - 5)
  for (let n = 0; n < 10; n++) ring.write(n, false, n, n, 0)
  assert.equal(ring.cursor, 5)
  const { seen, missed } = readAll(ring, from, ring.cursor)
  assert.equal(missed, 0)
  assert.deepEqual(
    seen.map(({ callNumber }) => callNumber),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  )
})

test('a slot that was never written is no metric, whatever the counter says', () => {
  const memory = createMetricsRing()
  new Int32Array(memory)[0] = 3
  const ring = new MetricsRing(memory)
  assert.deepEqual(readAll(ring, 2 ** 32 - 5, 3), { seen: [], missed: 8 })
})

test('a record that a writer is still at is told apart from those that are whole or overwritten', () => {
  const memory = createMetricsRing()
  const ring = new MetricsRing(memory)
  ring.write(1, false, 1, 1, 0)
  // A writer that has taken its number and got no further.
  Atomics.add(new Int32Array(memory), 0, 1)
  ring.write(3, false, 3, 3, 0)
  assert.equal(ring.firstOpen(0, ring.cursor), 1)
  assert.equal(ring.firstOpen(2, ring.cursor), 3)
  for (let n = 0; n < METRICS_SLOTS; n++) ring.write(4, false, 4, 4, 0)
  assert.equal(ring.firstOpen(0, ring.cursor), ring.cursor, 'overwritten: nobody needs to wait for it')
})

test('who reads on waits for a writer that was stopped, and not for one that is dead', () => {
  const memory = createMetricsRing()
  const ring = new MetricsRing(memory)
  const feed = new MetricsFeed(ring)
  const seen: number[] = []
  const look = (times: number): void => {
    for (let n = 0; n < times; n++) feed.look(({ callNumber }) => seen.push(callNumber))
  }
  const cursor = new Int32Array(memory, 0, 1)
  // A writer that has taken its number and got no further.
  Atomics.add(cursor, 0, 1)
  ring.write(2, false, 2, 2, 0)
  look(5)
  assert.deepEqual(seen, [])
  Atomics.store(cursor, 0, 0)
  ring.write(1, false, 1, 1, 0)
  Atomics.store(cursor, 0, 2)
  look(1)
  assert.deepEqual(seen, [1, 2], 'it has gone on')
  Atomics.add(cursor, 0, 1)
  ring.write(4, false, 4, 4, 0)
  look(20)
  assert.deepEqual(seen, [1, 2, 4])
})

test('names have the same numbers in every table of one memory', () => {
  const memory = createNameTable()
  const one = new NameTable(memory)
  const two = new NameTable(memory)
  const query = one.intern('db.query')
  assert.equal(two.intern('db.query'), query)
  assert.equal(two.nameOf(query), 'db.query')
  const later = two.intern('späte.Nachricht')
  assert.equal(one.nameOf(later), 'späte.Nachricht', 'found although the other table added it')
  assert.equal(one.nameOf(500), 'other')
})

test('a name longer than its entry has one number all the same', () => {
  const memory = createNameTable()
  const one = new NameTable(memory)
  const two = new NameTable(memory)
  const long = `tool.${'ü'.repeat(200)}`
  assert.equal(one.intern(long), two.intern(long))
  assert.equal(one.intern(long), new NameTable(memory).intern(long))
  assert.equal(one.nameOf(one.intern(long)), two.nameOf(two.intern(long)))
})

test('a full name table gives further names the number of `other`', () => {
  const names = new NameTable(createNameTable())
  for (let n = 1; n < NAMES_MAX; n++) assert.equal(names.intern(`tool.method${n}`), n)
  assert.equal(names.intern('one.more'), 0)
  assert.equal(names.nameOf(0), 'other')
  assert.equal(names.intern('tool.method7'), 7)
})

test('a status is set once for all, and says what it was', () => {
  const memory = createStatusTable()
  const one = new StatusTable(memory)
  const two = new StatusTable(memory)
  assert.equal(one.set(3, STATUS_DEAD), STATUS_OK)
  assert.deepEqual([two.get(3), two.peek(3), two.get(2)], [STATUS_DEAD, STATUS_DEAD, STATUS_OK])
  assert.equal(two.set(3, STATUS_OK), STATUS_DEAD)
})
