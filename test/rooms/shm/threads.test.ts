import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { KIND } from '../../../src/transport/frames/frames.ts'
import {
  createMetricsRing,
  METRICS_SLOTS,
  MetricsRing,
  type RawMetric,
} from '../../../src/transport/memory/metrics-ring.ts'
import { createNameTable, NameTable } from '../../../src/transport/memory/name-table.ts'
import { createRing } from '../../../src/transport/memory/spsc-ring.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'
import { SEED, seededRandom } from '../../support/random.ts'
import { fillBody } from './body.ts'
import type { Consumed, Task } from './ring-thread.ts'

function threads(t: TestContext, count: number): Piscina<Task> {
  const pool = new Piscina<Task>({
    filename: new URL('./ring-thread.ts', import.meta.url).href,
    minThreads: count,
    maxThreads: count,
    concurrentTasksPerWorker: 1,
    atomics: 'disabled',
  })
  pool.on('error', () => {})
  t.after(() => pool.destroy())
  return pool
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface StressOptions {
  frames: number
  /** At least 256 KiB: half of it must hold the largest frame that does not go by the port. */
  ringBytes: number
  /** One frame in so many is large enough for the bulk port. */
  bulkEvery: number
  seed: number
}

/** Sends frames to another thread while taking some of them back. @returns how often each was taken back, and what the thread saw */
async function stress(t: TestContext, { frames, ringBytes, bulkEvery, seed }: StressOptions) {
  t.diagnostic(`SEED=${seed}`)
  const random = seededRandom(seed)
  const pool = threads(t, 1)
  const memory = createRing(ringBytes)
  const doorbell = new MessageChannel()
  const bulk = new MessageChannel()
  const outbox = new Outbox(memory, doorbell.port1, bulk.port1)
  t.after(() => {
    outbox.close()
    doorbell.port1.close()
    bulk.port1.close()
  })
  const task: Task = { do: 'consume', memory, port: doorbell.port2, bulk: bulk.port2, frames }
  const consumed = pool.run(task, { transferList: [doorbell.port2, bulk.port2] }) as Promise<Consumed>

  const takenBack = new Uint8Array(frames)
  const positions: { number: number; position: number; length: number }[] = []
  const tryTakeBack = (): void => {
    const { number, position, length } = positions[random(positions.length)]!
    const body = outbox.ring.takeBack(position)
    if (body === null) return
    takenBack[number]!++
    assert.equal(body.length, length)
    const expected = Buffer.alloc(length)
    fillBody(expected, 0, length, number)
    assert.ok(body.equals(expected), `frame ${number} was damaged when it was taken back`)
  }
  for (let number = 0; number < frames; number++) {
    const isBulk = random(bulkEvery) === 0
    const reserved = isBulk ? 66_000 + random(100_000) : random(200)
    let frame = outbox.begin(KIND.LOG, number, reserved)
    while (frame === null) {
      await turn()
      frame = outbox.begin(KIND.LOG, number, reserved)
    }
    // Less than reserved, now and then: also a large one that turns out small.
    const length = random(10) === 0 ? random(reserved + 1) : reserved
    fillBody(frame.bytes, frame.at, length, number)
    const position = frame.send(length)
    if (position >= 0) {
      positions.push({ number, position, length })
      if (positions.length > 64) positions.shift()
    }
    if (positions.length > 0 && random(4) === 0) tryTakeBack()
    if (random(50) === 0) await turn()
  }
  outbox.sendText(KIND.SETTLED, 0, '')
  return { takenBack, consumed: await consumed }
}

test('every frame reaches exactly one side, whole and in order, while the other thread reads and this one takes back', async (t) => {
  const frames = 300_000
  const { takenBack, consumed } = await stress(t, { frames, ringBytes: 1 << 18, bulkEvery: 1000, seed: SEED })
  assert.equal(consumed.damaged, 0)
  assert.equal(consumed.disordered, 0)
  const twice: number[] = []
  const never: number[] = []
  let taken = 0
  for (let n = 0; n < frames; n++) {
    const times = consumed.seen[n]! + takenBack[n]!
    if (times > 1) twice.push(n)
    if (times === 0) never.push(n)
    taken += takenBack[n]!
  }
  assert.deepEqual({ twice, never }, { twice: [], never: [] })
  assert.ok(taken > 0 && taken < frames / 2, `${taken} were taken back: the race was none`)
})

test('large frames by the port keep their place among small ones by the ring', async (t) => {
  const frames = 3000
  const { takenBack, consumed } = await stress(t, { frames, ringBytes: 1 << 18, bulkEvery: 3, seed: SEED + 1 })
  assert.deepEqual([consumed.damaged, consumed.disordered], [0, 0])
  for (let n = 0; n < frames; n++) assert.equal(consumed.seen[n]! + takenBack[n]!, 1, `frame ${n}`)
})

test('several threads write metrics, and a reader sees only whole records, each at most once', async (t) => {
  const records = 150_000
  const memory = createMetricsRing()
  const ring = new MetricsRing(memory)
  const pool = threads(t, 2)
  let running = true
  const writers = Promise.all(
    [1, 2, 3, 4].map((thread) => pool.run({ do: 'write-metrics', memory, thread, records })),
  ).finally(() => {
    running = false
  })
  let from = 0
  let seen = 0
  let missed = 0
  const last = new Map<number, number>()
  const visit = (metric: RawMetric): void => {
    seen++
    const { threadNumber: thread, durationMs: n } = metric
    assert.deepEqual(metric, {
      callNumber: (thread * 100 + n) % 1000,
      failed: n % 3 === 0,
      refused: false,
      durationMs: n,
      endedMs: thread * 1e9 + n,
      threadNumber: thread,
    })
    assert.ok(n > (last.get(thread) ?? -1), `thread ${thread} is heard twice or out of order`)
    last.set(thread, n)
  }
  while (running || from !== ring.cursor) {
    const open = ring.firstOpen(from, ring.cursor)
    // A writer that was stopped while the others went round leaves an old record behind: nobody writes it any more.
    const to = open === from && !running ? ring.cursor : open
    missed += ring.read(from, to, visit)
    from = to
    await turn()
  }
  await writers
  assert.equal(ring.cursor, 4 * records)
  assert.equal(seen + missed, 4 * records)
  assert.ok(seen > METRICS_SLOTS, `only ${seen} were seen`)
  const latest: number[] = []
  ring.read(ring.cursor - 1000, ring.cursor, ({ durationMs }) => latest.push(durationMs))
  assert.equal(latest.length, 1000, 'the last thousand are there')
})

test('threads that name things at once agree on every number', async (t) => {
  const pool = threads(t, 3)
  const memory = createNameTable()
  const gate = new SharedArrayBuffer(8)
  const words = new Int32Array(gate)
  const names = Array.from({ length: 300 }, (_, n) => `tool.method${n}`)
  const random = seededRandom(SEED)
  const shuffled = (): string[] =>
    names
      .map((name) => ({ name, place: random(1 << 30) }))
      .sort((a, b) => a.place - b.place)
      .map(({ name }) => name)
  const running = [0, 1, 2].map(
    () => pool.run({ do: 'intern', memory, gate, names: shuffled() }) as Promise<[string, number][]>,
  )
  while (Atomics.load(words, 0) < 3) await turn()
  Atomics.store(words, 1, 1)
  Atomics.notify(words, 1)
  const table = new NameTable(memory)
  const numbers = new Map<string, number>()
  for (const list of await Promise.all(running)) {
    for (const [name, number] of list) {
      assert.equal(numbers.get(name) ?? number, number, `${name} has two numbers`)
      numbers.set(name, number)
      assert.equal(table.nameOf(number), name)
    }
  }
  assert.equal(new Set(numbers.values()).size, names.length)
})
