import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChangeWriter } from '../../src/primary/event-log/change-writer.ts'
import { StoredEvents } from '../../src/primary/event-log/stored-events.ts'
import type { Consumer } from '../../src/primary/events/consumer.ts'
import type { LogChanges } from '../../src/transport/log-changes.ts'

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
