import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChangeWriter } from '../../../src/primary/event-log/change-writer.ts'
import { StoredEvents } from '../../../src/primary/event-log/stored-events.ts'
import type { Consumer } from '../../../src/primary/events/consumer.ts'
import type { LogChanges } from '../../../src/transport/log-changes.ts'

const consumer = (group: string) => ({ group, broadcast: false }) as Consumer

test('an event stays in the log for the subscriber that gave it back, when another handles it afterwards', async (t) => {
  const written: LogChanges[] = []
  const writer = new ChangeWriter({ write: async (changes) => void written.push(changes), log: () => {} })
  t.after(() => writer.close())
  const none = {} as ConstructorParameters<typeof StoredEvents>[1] & ConstructorParameters<typeof StoredEvents>[2]
  const groups = { isKnown: () => true, waits: () => {}, isShared: false }
  const events = new StoredEvents(writer, none, none, groups, () => {})
  const event = events.begin({ seq: 7, event: 'order.placed', left: null, isRecorded: false, absent: [] })
  const [slow, waiting] = [consumer('slow'), consumer('waiting')].map((each) => event.shareOf(each)!.source)
  events.end()
  waiting!.ended(false)
  slow!.ended(true)
  await writer.written()
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
  const written: LogChanges[] = []
  const writer = new ChangeWriter({ write: async (changes) => void written.push(changes), log: () => {} })
  t.after(() => writer.close())
  const none = {} as ConstructorParameters<typeof StoredEvents>[1] & ConstructorParameters<typeof StoredEvents>[2]
  const waits: string[] = []
  const groups = { isKnown: () => true, waits: (_: string, group: string) => void waits.push(group), isShared: false }
  const events = new StoredEvents(writer, none, none, groups, () => {})
  const event = events.begin({ seq: 7, event: 'order.placed', left: null, isRecorded: false, absent: [] })
  const [gone, busy] = [consumer('gone'), consumer('busy')].map((each) => event.shareOf(each)!.source)
  const plan = { attempt: 2, deaths: 0, dueMs: Date.now() + 60_000, error: 'not now', mayLeave: true }
  assert.equal(gone!.retrying!(plan), true)
  // Its time has come, and only the other one is offered the event.
  const left = [{ seq: 7, grp: 'gone', attempt: 2, deaths: 0, due_ms: plan.dueMs, error: 'not now' }]
  assert.equal(event.sharesBack(false, left)!.shareOf(consumer('busy')), null)
  events.awaitAway(event, left)
  busy!.ended(true)
  await writer.written()
  assert.deepEqual(waits, ['gone'])
  assert.deepEqual(
    written.flatMap(({ forget }) => forget),
    [],
    'it is not forgotten',
  )
  const rows = written.flatMap(({ waiting }) => waiting).filter(({ group }) => group === 'gone')
  assert.deepEqual(rows.at(-1), { seq: 7, group: 'gone', attempt: 2, deaths: 0, dueMs: -1, error: 'not now' })
})
