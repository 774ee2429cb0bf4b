import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { DueEvents } from '../../../src/primary/event-log/due-events.ts'
import { Feed, type FeedParts } from '../../../src/primary/event-log/feed.ts'
import { SetAside } from '../../../src/primary/event-log/set-aside.ts'
import { Settler } from '../../../src/primary/event-log/settler.ts'
import { SqlLog } from '../../../src/primary/event-log/sql-log.ts'
import { StoredEvents } from '../../../src/primary/event-log/stored-events.ts'
import type { EventLog } from '../../../src/runtime/event-log/event-log.ts'
import { envelopeOf } from '../../../src/runtime/event-store/event-columns.ts'
import { eventOf, hubOf } from '../events/fake-thread.ts'

interface Read {
  wanted: readonly number[]
  answer: () => void
}

/** A log in which nothing is read before the test lets it, and a hub that has done with each event as soon as it gets it. */
async function feedOf(t: TestContext, stored: readonly number[]) {
  const reads: Read[] = []
  const query = async (sql: string, params: readonly (number | string)[] = []): Promise<unknown> => {
    if (sql.includes('min(seq)')) return [{ first: stored[0] ?? 1, last: stored.at(-1) ?? 0 }]
    // What is due.
    if (sql.includes('due_ms > 0')) return []
    const [from, to] = params.map(Number) as [number, number]
    const isRange = sql.includes('seq > $1 AND seq <= $2')
    let wanted = stored.filter((seq) => (isRange ? seq > from && seq <= to : params.includes(seq)))
    // What waits for a group: the even ones.
    if (sql.includes('d.due_ms < 0')) wanted = stored.filter((seq) => seq % 2 === 0 && seq <= Number(params[2]))
    await new Promise<void>((resolve) => reads.push({ wanted, answer: resolve }))
    const row = { id: 'evt_1', event: 'order.placed', envelope: envelopeOf(eventOf('evt_1')), payload: '{}', key: null }
    return wanted.map((seq) => ({ ...row, seq, due_ms: 0, expires_ms: 0, is_split: 0 }))
  }
  const queryOne = async (sql: string) => ((await query(sql)) as unknown[])[0]
  const memory = { epoch: 0, isOpen: true, next: 100, parked: 0, stored: 0, free: 0 }
  const eventLog = {
    database: { query, queryOne },
    memory,
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
  } as unknown as EventLog
  const log = new SqlLog(eventLog)
  const { hub } = hubOf(t)
  const taken: number[] = []
  const recorded: number[] = []
  hub.take = ({ seq }) => taken.push(seq)
  hub.record = ({ seq }) => void recorded.push(seq)
  const settler = new Settler({ clock: SYSTEM_CLOCK, chance: SYSTEM_CHANCE, write: async () => {}, log: () => {} })
  const due = new DueEvents(log, () => {})
  const groups = {
    absentOf: () => [],
    waitedFor: () => [],
    isKnown: () => false,
    waits: () => {},
    isShared: false,
    waiting: 0,
    hasFound: true,
    tell: () => {},
    look: async () => {},
  } as unknown as FeedParts['groups']
  const events = new StoredEvents(settler, log.memory, hub.parked, groups, due)
  const feed = new Feed({
    options: {
      hub,
      log: eventLog,
      maxQueue: 100,
      deathsOf: null,
      report: () => {},
      catchUp: () => {},
    } as unknown as FeedParts['options'],
    log,
    events,
    settler,
    groups,
    due,
    letters: { learnReplay: () => {}, isHeld: () => false, look: async () => {} } as unknown as FeedParts['letters'],
    setAside: new SetAside(log, () => {}),
    relay: null,
    onTurn: () => {},
  })
  t.after(() => {
    feed.end()
    due.close()
    settler.close()
    for (const { answer } of reads) answer()
  })
  let answered = 0
  /** Answers the next read. @param meanwhile happens after the read was begun */
  const read = async (meanwhile = () => {}): Promise<void> => {
    while (reads.length === answered) await new Promise(setImmediate)
    meanwhile()
    const { wanted, answer } = reads[answered++]!
    const before = taken.length
    answer()
    // Either it delivers the page, or it reads it once more.
    while (taken.length < before + wanted.length && reads.length === answered) await new Promise(setImmediate)
  }
  /** An event that has just been committed. Those with keys are taken when this turn has been read. */
  const publish = async (seq: number, key: string | null = null) => feed.take(eventOf(`evt_${seq}`, { seq, key }), null)
  return { feed, taken, recorded, read, publish }
}

test('what goes on while a page is read comes before the page, and what is new after it', async (t) => {
  const { feed, taken, read, publish } = await feedOf(t, [1, 2, 3, 4, 5, 6])
  for (const seq of [3, 4, 5]) await publish(seq)
  feed.adopt()
  void feed.read()
  await read(() => {
    feed.replaying(2)
    feed.replaying(1)
    void publish(6, 'key')
  })
  assert.deepEqual(taken, [], 'the page is put back')
  await read()
  assert.deepEqual(taken, [1, 2])
  await read()
  assert.deepEqual(taken, [1, 2, 3, 4, 5, 6])
  await new Promise(setImmediate)
  await publish(7, 'key')
  assert.equal(taken.at(-1), 7, 'nothing waits any more')
})

test("a group that comes back while an earlier process's events are read gets its own first, and none twice", async (t) => {
  const { feed, taken, read } = await feedOf(t, [1, 2, 3, 4])
  await feed.findLeft()
  assert.equal(feed.size, 4)
  feed.adopt()
  void feed.read()
  await read(() => feed.groupReturned('order.placed', 'group'))
  assert.deepEqual(taken, [])
  await read()
  assert.deepEqual(taken, [], 'nothing before what has been read waits for it')
  await read()
  assert.deepEqual(taken, [1, 2, 3, 4])
  assert.equal(feed.size, 0)
})

test('what a group has missed comes before what has no room', async (t) => {
  const { feed, taken, read, publish } = await feedOf(t, [1, 2, 3, 4, 5])
  await publish(5)
  feed.adopt()
  feed.groupReturned('order.placed', 'group')
  void feed.read()
  await read()
  assert.deepEqual(taken, [2, 4])
  await read()
  assert.deepEqual(taken, [2, 4, 5])
})

test('an event is recorded once: when it is published, or when it is read that nobody has handed on', async (t) => {
  const { feed, taken, recorded, read, publish } = await feedOf(t, [1, 2])
  const reconciler = { isUncertain: true, isDue: () => false }
  feed.reconciler = reconciler as unknown as Feed['reconciler']
  feed.adopt()
  await publish(2, 'key')
  assert.deepEqual([taken, recorded], [[], [2]])
  reconciler.isUncertain = false
  void feed.read()
  await read()
  assert.deepEqual([taken, recorded], [[2], [2]])
  feed.replaying(1)
  await read()
  assert.deepEqual(
    [taken, recorded],
    [
      [2, 1],
      [2, 1],
    ],
  )
})
