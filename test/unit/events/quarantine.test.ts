import assert from 'node:assert/strict'
import { test } from 'node:test'
import { POISON_DEATHS } from '../../../src/primary/events/quarantine.ts'
import { until } from '../../support/until.ts'
import { BOX, eventOf, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

test('events in flight at a death are tried again one at a time, in the quarantine lane alone', (t) => {
  const { hub, wishes } = hubOf(t)
  const [dying, other, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  hub.subscribe('order.placed', 'group', {}, instanceOf(other))
  hub.threadGone(dying, NOTHING, BOX)
  assert.deepEqual(wishes, [true])
  assert.deepEqual(other.events, [], 'suspects go to no other lane')
  hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
  hub.publish(eventOf('evt_new'), null)
  assert.deepEqual(other.events, ['evt_new'], 'what is new goes past them')
  for (const count of [1, 2, 3]) {
    assert.equal(quarantine.taken.length, count)
    hub.delivered(quarantine.taken.at(-1)!.id)
  }
  assert.deepEqual(quarantine.events, ['evt_1', 'evt_2', 'evt_3'])
  assert.deepEqual(wishes, [true, false])
  hub.delivered(other.taken[0]!.id)
  assert.equal(hub.pending, 0)
})

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

test('an event at as many deaths as make it poison becomes a dead letter with its black box', (t) => {
  const { hub, wishes } = hubOf(t)
  const dying = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  hub.publish(eventOf('evt_poison'), null)
  hub.threadGone(dying, NOTHING, BOX)
  for (let deaths = 1; deaths < POISON_DEATHS; deaths++) {
    const quarantine = fakeThread(true)
    hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
    assert.deepEqual(quarantine.events, ['evt_poison'])
    hub.threadGone(quarantine, NOTHING, BOX)
  }
  assert.equal(hub.pending, 0)
  const [letter, ...others] = hub.deadLetters.list()
  assert.deepEqual(others, [])
  assert.match(letter!.error, /^The thread died 3 times while it handled this event: it died$/)
  assert.equal(letter!.black_box?.message, 'it died')
  assert.equal(wishes.at(-1), false)
})

test('a delivery that the dead lane never began is under no suspicion, however often that happens', (t) => {
  const { hub, wishes } = hubOf(t)
  hub.publish(eventOf('evt_unheard'), null)
  let thread = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(thread))
  hub.publish(eventOf('evt_unread'), null)
  for (let deaths = 0; deaths < POISON_DEATHS + 1; deaths++) {
    const next = fakeThread()
    hub.threadGone(thread, new Set([thread.taken[0]!.id]), BOX)
    hub.subscribe('order.placed', 'group', {}, instanceOf(next))
    assert.deepEqual(next.events, ['evt_unread'])
    thread = next
  }
  assert.deepEqual(wishes, [])
  assert.deepEqual(hub.deadLetters.list(), [])
})

test('a lane that ends because it was told to puts nothing under suspicion', (t) => {
  const { hub, wishes } = hubOf(t)
  const [old, fresh] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', {}, instanceOf(old))
  hub.publish(eventOf('evt_slow'), null)
  hub.subscribe('order.placed', 'group', {}, instanceOf(fresh))
  hub.threadGone(old, NOTHING, null)
  assert.deepEqual(fresh.events, ['evt_slow'])
  assert.deepEqual(wishes, [])
})

test('events of one key wait behind a suspect, in order', (t) => {
  const { hub } = hubOf(t)
  const [dying, other, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id, { key: 'one' }), null)
  hub.subscribe('order.placed', 'group', {}, instanceOf(other))
  hub.threadGone(dying, NOTHING, BOX)
  hub.publish(eventOf('evt_4', { key: 'one' }), null)
  hub.publish(eventOf('evt_else', { key: 'two' }), null)
  assert.deepEqual(other.events, ['evt_else'])
  hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
  assert.deepEqual(quarantine.events, ['evt_1'])
  hub.delivered(quarantine.taken[0]!.id)
  for (const id of ['evt_2', 'evt_3', 'evt_4']) {
    assert.equal(other.events.at(-1), id)
    hub.delivered(other.taken.at(-1)!.id)
  }
  assert.deepEqual(quarantine.events, ['evt_1'], 'those behind it are no suspects')
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

test('nothing is kept for a subscriber that has left while its event is a suspect', async (t) => {
  for (const isUnderWay of [true, false]) {
    const { hub, wishes } = hubOf(t)
    const [dying, other, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
    hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
    hub.publish(eventOf('evt_suspect', { key: 'one' }), null)
    hub.publish(eventOf('evt_behind', { key: 'one' }), null)
    const leave = hub.subscribe('order.placed', 'group', {}, instanceOf(other))
    hub.threadGone(dying, NOTHING, BOX)
    if (isUnderWay) hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
    leave()
    if (isUnderWay) hub.threadGone(quarantine, NOTHING, BOX)
    await until(() => hub.pending === 0, 'an empty queue')
    assert.deepEqual(other.events, [])
    assert.deepEqual(wishes, [true, false])
    assert.deepEqual(hub.deadLetters.list(), [])
  }
})

test('the suspects of a plugin that is set aside wait in quarantine until it is tried again', (t) => {
  const { hub } = hubOf(t)
  const [dying, quarantine] = [fakeThread(), fakeThread(true)]
  for (const thread of [dying, quarantine]) hub.subscribe('order.placed', 'group', {}, instanceOf(thread))
  hub.publish(eventOf('evt_suspect'), null)
  hub.pausePlugin('shop.Sell', true)
  hub.threadGone(dying, NOTHING, BOX)
  assert.deepEqual(quarantine.events, [])
  hub.pausePlugin('shop.Sell', false)
  assert.deepEqual(quarantine.events, ['evt_suspect'])
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

test('a suspect waits while all lanes start anew, whatever an earlier quarantine lane lacked', (t) => {
  const { hub } = hubOf(t)
  const [dying, quarantine, fresh] = [fakeThread(), fakeThread(true), fakeThread()]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  hub.publish(eventOf('evt_suspect'), null)
  hub.quarantineUp(quarantine)
  hub.threadGone(dying, NOTHING, BOX)
  assert.equal(hub.pending, 1)
  hub.subscribe('order.placed', 'group', {}, instanceOf(fresh))
  hub.dropVacant()
  assert.deepEqual(fresh.events, ['evt_suspect'])
})

test('a suspect is not tried in a lane that is kept for other plugins', (t) => {
  const { hub } = hubOf(t)
  const [dying, kept, free] = [fakeThread(), fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  hub.publish(eventOf('evt_suspect'), null)
  hub.subscribe('order.placed', 'group', {}, { ...instanceOf(kept), isHeldBack: true })
  hub.quarantineUp(fakeThread(true))
  hub.threadGone(dying, NOTHING, BOX)
  assert.deepEqual(kept.events, [])
  hub.subscribe('order.placed', 'group', {}, instanceOf(free))
  assert.deepEqual(free.events, ['evt_suspect'])
})

test('a suspect whose subscriber is in no lane at all is dropped with a warning, once all lanes are up', (t) => {
  const { hub, wishes, warnings } = hubOf(t)
  const dying = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2']) hub.publish(eventOf(id), null)
  hub.threadGone(dying, NOTHING, BOX)
  hub.quarantineUp(fakeThread(true))
  assert.equal(hub.pending, 2)
  hub.dropVacant()
  assert.deepEqual(warnings, ['group is gone: 2 events that waited for it are dropped'])
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
