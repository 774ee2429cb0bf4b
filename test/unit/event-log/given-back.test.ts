import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { DueEvents } from '../../../src/primary/event-log/due-events.ts'
import { Settler } from '../../../src/primary/event-log/settler.ts'
import type { SqlLog } from '../../../src/primary/event-log/sql-log.ts'
import type { StoredEvent } from '../../../src/primary/event-log/stored-events.ts'
import { NO_SLOT, StoredEvents } from '../../../src/primary/event-log/stored-events.ts'
import { Consumer, deliveryOf, hubEventOf } from '../../../src/primary/events/consumer.ts'
import type { LogChanges } from '../../../src/transport/log-changes.ts'
import { eventOf } from '../events/fake-thread.ts'

/** A delivery of an event to a group. */
function accepted(events: StoredEvents, event: StoredEvent, group: string) {
  const { queue } = new Consumer(event.event, group, {}, [])
  const delivery = deliveryOf(queue, hubEventOf(eventOf('evt_1', { seq: event.seq }), 0, events), null)
  events.accepted(delivery)
  return delivery
}

/** Stored events, and what is written of them. */
function storedEvents(t: TestContext, waits: string[] = []) {
  const written: LogChanges[] = []
  const settler = new Settler({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    write: async (changes) => void written.push(changes),
    log: () => {},
  })
  t.after(() => settler.close())
  const none = {} as ConstructorParameters<typeof StoredEvents>[1] & ConstructorParameters<typeof StoredEvents>[2]
  const groups = { isKnown: () => true, waits: (_: string, group: string) => void waits.push(group), isShared: false }
  const due = new DueEvents({ clock: SYSTEM_CLOCK } as SqlLog, () => {})
  return { events: new StoredEvents(settler, none, none, groups, due), settler, written }
}

test('an event stays in the log for the subscriber that gave it back, when another handles it afterwards', async (t) => {
  const { events, settler, written } = storedEvents(t)
  const event = events.begin({ seq: 7, event: 'order.placed', left: null, absent: [], slot: NO_SLOT, isTaken: false })
  const [slow, waiting] = ['slow', 'waiting'].map((group) => accepted(events, event, group))
  events.end()
  events.ended(waiting!, false)
  events.ended(slow!, true)
  await settler.written()
  assert.deepEqual(
    written.flatMap(({ forget }) => forget),
    [],
  )
  assert.deepEqual(
    written.flatMap((changes) => changes.waiting.map(({ seq, group, attempt }) => ({ seq, group, attempt }))),
    [{ seq: 7, group: 'waiting', attempt: 1 }],
  )
})

test('an event waits for a group that has gone while its next attempt waited in the log', async (t) => {
  const waits: string[] = []
  const { events, settler, written } = storedEvents(t, waits)
  const event = events.begin({ seq: 7, event: 'order.placed', left: null, absent: [], slot: NO_SLOT, isTaken: false })
  const [gone, busy] = ['gone', 'busy'].map((group) => accepted(events, event, group))
  const dueMs = Date.now() + 60_000
  Object.assign(gone!, { attempt: 2, error: 'not now' })
  assert.equal(events.retrying(gone!, dueMs, true), true)
  // Its time has come, and only the other one is offered the event.
  const left = [{ seq: 7, group: 'gone', attempt: 2, deaths: 0, dueMs, error: 'not now' }]
  assert.deepEqual(
    event.sharesBack(left, (group) => group === 'busy'),
    [],
  )
  events.awaitAway(event, left)
  events.ended(busy!, true)
  await settler.written()
  assert.deepEqual(waits, ['gone'])
  assert.deepEqual(
    written.flatMap(({ forget }) => forget),
    [],
    'it is not forgotten',
  )
  const rows = written.flatMap(({ waiting }) => waiting).filter(({ group }) => group === 'gone')
  assert.deepEqual(rows.at(-1), { seq: 7, group: 'gone', attempt: 2, deaths: 0, dueMs: -1, error: 'not now' })
})

test('a death that was stored before a trial is taken back when the process outlives it: at an attempt that fails, and at its end', async (t) => {
  const { events, settler, written } = storedEvents(t)
  const begun = { event: 'order.placed', left: [], absent: [], slot: NO_SLOT, isTaken: false, trial: ['slow'] }
  const [failing, waiting] = [7, 8].map((seq) => {
    const delivery = accepted(events, events.begin({ ...begun, seq }), 'slow')
    return Object.assign(delivery, { deaths: 2 })
  })
  events.retrying(failing!, Date.now(), true)
  assert.equal(failing!.deaths, 2)
  events.end()
  for (const delivery of [failing!, waiting!]) events.ended(delivery, false)
  await settler.written()
  assert.deepEqual(
    written.flatMap((changes) => changes.waiting.map(({ seq, deaths }) => ({ seq, deaths }))),
    [
      { seq: 7, deaths: 2 },
      { seq: 8, deaths: 2 },
    ],
  )
})
