import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NO_TRACE_CONTEXT } from '../../../src/core/causality/trace-context.ts'
import { encodeEntry } from '../../../src/runtime/streams/entry.ts'
import { PendingEntries } from '../../../src/runtime/streams/pending-entries.ts'
import { StreamReader } from '../../../src/runtime/streams/reader.ts'
import type { Entry, StreamCommands } from '../../../src/runtime/streams/stream-commands.ts'
import { ThreadGroups } from '../../../src/runtime/streams/thread-groups.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import type { StreamHandOver } from '../../../src/transport/stream-messages.ts'
import { until } from '../../support/until.ts'

const EVENT = 'orders.placed'

function entry(n: number): Entry {
  const frame: EventFrame = {
    event: EVENT,
    id: `evt_${n}`,
    parentId: null,
    emitter: 'shop',
    requestId: null,
    timestampMs: 1000,
    payload: JSON.stringify({ n }),
    payloadKeys: 'n',
    seq: 0,
    subscriber: 0,
    attempt: 0,
    delayMs: 0,
    ttlMs: 0,
    key: null,
    trace: NO_TRACE_CONTEXT,
  }
  return [`${n}-0`, encodeEntry(frame, 'replica', null)]
}

/** A store with one stream, read by one consumer of one group. */
class Store {
  unread: Entry[] = []
  readonly pending = new Map<string, Entry>()
  readonly ensured: string[] = []
  #lastId = '0-0'
  /** The next read takes its entries, and its answer is lost. */
  losesAnswer = false
  /** What answers wait for. */
  gate: Promise<void> = Promise.resolve()

  add(from: number, to: number): void {
    for (let n = from; n <= to; n++) this.unread.push(entry(n))
    this.#lastId = `${to}-0`
  }

  async lastEntryId(): Promise<string> {
    return this.#lastId
  }
  async read(_stream: string, _group: string, _consumer: string, count: number): Promise<Entry[]> {
    const entries = this.unread.splice(0, count)
    for (const each of entries) this.pending.set(each[0], each)
    if (this.losesAnswer) {
      this.losesAnswer = false
      throw new Error('The connection was lost')
    }
    return entries
  }
  async readOwn(_stream: string, _group: string, _consumer: string, after: string, count: number): Promise<Entry[]> {
    await this.gate
    const number = (id: string): number => Number.parseInt(id, 10)
    return [...this.pending.values()].filter(([id]) => number(id) > number(after)).slice(0, count)
  }
  async acknowledge(_stream: string, _group: string, ids: readonly string[]): Promise<void> {
    for (const id of ids) this.pending.delete(id)
  }
  async ensureGroup(_stream: string, group: string): Promise<void> {
    this.ensured.push(group)
  }
}

function reading(t: TestContext) {
  const store = new Store()
  const commands = store as unknown as StreamCommands
  const groups = new ThreadGroups()
  const served: { id: number; n: number }[] = []
  const handedOver: StreamHandOver[] = []
  const told: string[] = []
  const pending = new PendingEntries({
    commands,
    groups,
    replica: 'replica',
    serve: (id, { payload }) => served.push({ id, n: JSON.parse(payload).n }),
    received: () => {},
    handOver: (handOver) => handedOver.push(handOver),
    settled: () => reader.settled(),
    tracing: null,
  })
  const reader: StreamReader = new StreamReader({
    commands,
    groups,
    pending,
    idle: (event, upTo) => told.push(`${event} is read up to ${upTo}`),
    more: () => {},
    full: (event, isFull) => told.push(`${event} ${isFull ? 'finds no room' : 'finds room'}`),
    log: () => {},
  })
  t.after(() => pending.close())
  groups.add(0, 'Shop', EVENT, 'Shop.onPlaced', {})
  groups.start('replica:0')
  groups.open(EVENT, 'Shop.onPlaced')
  const answerAll = (): void => {
    for (const { id } of served) pending.delivered(id)
  }
  return { store, groups, pending, reader, served, handedOver, told, answerAll }
}

const numbers = (served: readonly { n: number }[]): number[] => served.map(({ n }) => n)
const upTo = (to: number): number[] => Array.from({ length: to }, (_, n) => n + 1)

test('a reader that is woken reads all there is, once and in its order, and says up to where', async (t) => {
  const { store, reader, pending, served, told, answerAll } = reading(t)
  store.add(1, 300)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  assert.deepEqual(numbers(served), upTo(300))
  assert.deepEqual(told, [`${EVENT} is read up to 300-0`])
  assert.equal(pending.size, 300)
  answerAll()
  await until(() => store.pending.size === 0 && pending.size === 0, 'all is acknowledged')
})

test('a reader with as many pending entries as it takes leaves the rest in the stream until there is room', async (t) => {
  const { store, reader, pending, served, told, answerAll } = reading(t)
  store.add(1, 1500)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  assert.deepEqual(told, [`${EVENT} finds no room`])
  assert.equal(pending.room, 0)
  assert.equal(store.unread.length, 1500 - served.length)
  answerAll()
  await until(() => served.length === 1500, 'all are begun')
  assert.equal(told[1], `${EVENT} finds room`)
  assert.deepEqual(numbers(served), upTo(1500))
})

test('an event that nobody here has ever subscribed to is not waited for', (t) => {
  const { reader, told } = reading(t)
  reader.wake('orders.paid')
  assert.deepEqual(told, ['orders.paid is read up to 0-0'])
})

test('a group that is held, or not open, is not read; the others of its event are', async (t) => {
  const { store, groups, reader, served, told } = reading(t)
  store.add(1, 3)
  groups.hold(EVENT, 'Shop.onPlaced', true)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  assert.deepEqual(served, [])
  groups.hold(EVENT, 'Shop.onPlaced', false)
  reader.wake(EVENT)
  await until(() => served.length === 3, 'all three are begun')
})

test('entries that were read and lost on the way are taken when the store answers again, and no other twice', async (t) => {
  const { store, reader, served, told } = reading(t)
  store.add(1, 3)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  store.add(4, 20)
  store.losesAnswer = true
  reader.wake(EVENT)
  await until(() => told.length === 2, 'it says so again')
  assert.deepEqual(numbers(served), upTo(20))
  assert.deepEqual(store.ensured, ['Shop.onPlaced'])
})

test('a subscriber that comes back does not get the pending entries again', async (t) => {
  const { store, groups, reader, served, told } = reading(t)
  store.add(1, 3)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  groups.remove(0)
  groups.open(EVENT, 'Shop.onPlaced')
  store.add(4, 5)
  reader.wake(EVENT)
  await until(() => told.length === 2, 'it sleeps, and has read nothing')
  assert.deepEqual(numbers(served), upTo(3))
  groups.add(1, 'Shop', EVENT, 'Shop.onPlaced', {})
  groups.open(EVENT, 'Shop.onPlaced')
  store.losesAnswer = true
  reader.wake(EVENT)
  await until(() => told.length === 3, 'it has found what got lost')
  assert.deepEqual(numbers(served), upTo(5))
})

test('a group that threads share and a broadcast of the same name are two', async (t) => {
  const { groups, store, reader, served, told } = reading(t)
  groups.add(1, 'Shop', EVENT, 'Shop.onPlaced', { broadcast: true })
  assert.deepEqual(
    groups.of(EVENT)!.map(({ consumerGroup }) => consumerGroup),
    ['Shop.onPlaced', 'Shop.onPlaced@replica:0'],
  )
  store.add(1, 2)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  assert.equal(served.length, 2)
})

test('an event whose subscriber has left meanwhile, or that is none, is handed over', async (t) => {
  const { store, groups, reader, served, handedOver } = reading(t)
  store.add(1, 1)
  store.unread.push(['2-0', ['what', 'ever']])
  reader.wake(EVENT)
  groups.remove(0)
  await until(() => handedOver.length === 2, 'both are handed over')
  assert.deepEqual(served, [])
  assert.equal(handedOver[0]!.fault, null)
  assert.equal(handedOver[1]!.frame, null)
})

test('a reader stops when all pending entries are answered and acknowledged, and reads nothing more', async (t) => {
  const { store, reader, served, told, answerAll } = reading(t)
  store.add(1, 3)
  reader.wake(EVENT)
  await until(() => told.length === 1, 'it says that it sleeps')
  let isStopped = false
  const stopped = reader.stop().then(() => {
    isStopped = true
  })
  store.add(4, 4)
  reader.wake(EVENT)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isStopped, false)
  answerAll()
  await stopped
  assert.deepEqual([store.pending.size, served.length, store.unread.length], [0, 3, 1])
})

test('a reader that is told to stop while it looks for lost entries stops', async (t) => {
  const { store, reader, served, answerAll } = reading(t)
  store.add(1, 3)
  store.losesAnswer = true
  let open = (): void => {}
  store.gate = new Promise((resolve) => {
    open = resolve
  })
  reader.wake(EVENT)
  await until(() => store.ensured.length === 1, 'it looks for what got lost')
  const stopped = reader.stop()
  open()
  await until(() => served.length === 3, 'all three are begun')
  answerAll()
  await stopped
})

test('a reader that is told to stop while it looks, and finds nothing, stops too, and reads nothing more', async (t) => {
  const { store, reader } = reading(t)
  store.losesAnswer = true
  let open = (): void => {}
  store.gate = new Promise((resolve) => {
    open = resolve
  })
  reader.wake(EVENT)
  await until(() => store.ensured.length === 1, 'it looks for what got lost')
  const stopped = reader.stop()
  store.add(1, 1)
  open()
  await stopped
  assert.equal(store.unread.length, 1)
})
