import assert from 'node:assert/strict'
import { test } from 'node:test'
import { POISON_DEATHS } from '../../../src/primary/events/quarantine.ts'
import { until } from '../../support/until.ts'
import { BOX, eventOf, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

test('a suspect that cannot be tried lets the next one pass', (t) => {
  const { hub } = hubOf(t)
  const [dying, quarantine] = [fakeThread(), fakeThread(true)]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  hub.subscribe('order.paid', 'group', {}, instanceOf(dying))
  hub.publish(eventOf('evt_unheard'), null)
  hub.publish(eventOf('evt_heard', { event: 'order.paid' }), null)
  hub.threadGone(dying, NOTHING, BOX)
  hub.subscribe('order.paid', 'group', {}, instanceOf(quarantine))
  assert.deepEqual(quarantine.events, ['evt_heard'])
})

test('the retries of a suspect stay in quarantine', async (t) => {
  const { hub } = hubOf(t)
  const [dying, other, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
  for (const thread of [dying, quarantine])
    hub.subscribe('order.placed', 'group', { retries: 2, backoffMs: 0 }, instanceOf(thread))
  hub.publish(eventOf('evt_suspect'), null)
  hub.subscribe('order.placed', 'group', { retries: 2, backoffMs: 0 }, instanceOf(other))
  hub.threadGone(dying, NOTHING, BOX)
  for (const attempt of [1, 2, 3]) {
    await until(() => quarantine.taken.length === attempt, `attempt ${attempt}`)
    assert.equal(quarantine.taken.at(-1)!.attempt, attempt, 'a death is no attempt')
    hub.failed(quarantine.taken.at(-1)!.id, { message: 'not now' })
  }
  assert.deepEqual(other.events, [])
  assert.equal(hub.pending, 0)
  const [letter] = hub.deadLetters.list()
  assert.deepEqual([letter?.error, letter?.attempts], ['not now', 3])
  assert.equal(letter?.black_box, undefined, 'it failed by itself, and no lane died of it')
})

test('a suspect whose time is up asks for a fresh quarantine lane, and the next one is tried in that', async (t) => {
  const [dying, used, fresh] = [fakeThread(), fakeThread(true), fakeThread(true)]
  let renewals = 0
  const { hub } = hubOf(t, {
    onQuarantineUsed: () => {
      renewals++
      // As the supervisor has it: it is leaving.
      used.hasRoom = false
    },
  })
  hub.subscribe('order.placed', 'group', { timeoutMs: 1 }, instanceOf(dying))
  for (const id of ['evt_hangs', 'evt_fine']) hub.publish(eventOf(id), null)
  hub.threadGone(dying, NOTHING, BOX)
  hub.subscribe('order.placed', 'group', { timeoutMs: 60_000 }, instanceOf(used))
  await until(() => renewals > 0, 'the wish for a fresh lane')
  assert.deepEqual(used.abandoned, [used.taken[0]!.id])
  const [letter] = hub.deadLetters.list()
  assert.equal(letter!.event_id, 'evt_hangs')
  assert.match(letter!.error, /did not finish within 1 ms/)
  hub.threadGone(used, NOTHING, null)
  hub.subscribe('order.placed', 'group', { timeoutMs: 60_000 }, instanceOf(fresh))
  assert.deepEqual([used.events, fresh.events], [['evt_hangs'], ['evt_fine']])
  assert.equal(renewals, 1)
})

test('a suspect whose subscriber the quarantine lane lacks is tried in a lane that has no other event, one at a time', async (t) => {
  const { hub, wishes } = hubOf(t)
  const [dying, busy, idle, quarantine] = [fakeThread(), fakeThread(), fakeThread(), fakeThread(true)]
  busy.deliveriesInFlight = 1
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2']) hub.publish(eventOf(id), null)
  hub.subscribe('order.placed', 'group', {}, instanceOf(busy))
  hub.threadGone(dying, NOTHING, BOX)
  assert.deepEqual(wishes, [true], 'the lane may have it')
  hub.quarantineUp(quarantine)
  assert.deepEqual(wishes, [true, false], 'they do not keep it')
  assert.deepEqual(busy.events, [])
  hub.subscribe('order.placed', 'group', {}, instanceOf(idle))
  assert.deepEqual(idle.events, ['evt_1'])
  hub.delivered(idle.taken[0]!.id)
  assert.deepEqual(idle.events, ['evt_1', 'evt_2'])
  hub.delivered(idle.taken[1]!.id)
  assert.deepEqual(busy.events, [])
  assert.equal(hub.pending, 0)
  assert.deepEqual(wishes, [true, false])
})

test('suspects that wait are not looked at each time that another event has been handled', (t) => {
  const { hub } = hubOf(t)
  const [dying, quarantine, other] = [fakeThread(), fakeThread(true), fakeThread()]
  let looks = 0
  Object.defineProperty(quarantine, 'hasRoom', { get: () => ++looks < 0 })
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  hub.subscribe('order.paid', 'group', {}, instanceOf(other))
  hub.publish(eventOf('evt_suspect'), null)
  hub.threadGone(dying, NOTHING, BOX)
  hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
  looks = 0
  for (let n = 0; n < 100; n++) {
    hub.publish(eventOf(`evt_${n}`, { event: 'order.paid' }), null)
    hub.delivered(other.taken.at(-1)!.id)
  }
  assert.equal(looks, 0)
})

test('the options of a subscriber are those of the regular lanes', (t) => {
  const { hub } = hubOf(t)
  const [regular, quarantine] = [fakeThread(), fakeThread(true)]
  hub.subscribe('order.placed', 'group', {}, instanceOf(regular))
  hub.subscribe('order.placed', 'group', { broadcast: true, retries: 5 }, instanceOf(quarantine))
  hub.publish(eventOf('evt_fails'), null)
  hub.failed(regular.taken[0]!.id, { message: 'not now' })
  assert.equal(hub.deadLetters.list()[0]?.attempts, 1)
})

test('a dead letter of an event whose threads died counts these attempts', (t) => {
  const { hub } = hubOf(t)
  for (let n = 0; n < POISON_DEATHS; n++) {
    const dying = fakeThread(n > 0)
    hub.subscribe('order.placed', 'group', { retries: 2 }, instanceOf(dying))
    if (n === 0) hub.publish(eventOf('evt_deadly'), null)
    assert.deepEqual(dying.events, ['evt_deadly'])
    hub.threadGone(dying, NOTHING, BOX)
  }
  assert.deepEqual([hub.deadLetters.list().length, hub.deadLetters.list()[0]?.attempts], [1, POISON_DEATHS])
})
