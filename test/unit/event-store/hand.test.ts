import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Hand } from '../../../src/primary/event-store/hand.ts'
import { Reader } from '../../../src/primary/event-store/reader.ts'
import { Settler } from '../../../src/primary/event-store/settler.ts'
import type { OwnedSlot, SlotState } from '../../../src/primary/event-store/slots.ts'
import type { StoredDelivery } from '../../../src/primary/event-store/store.ts'
import type { NotedDelivery } from '../../../src/transport/store-changes.ts'
import { until } from '../../support/until.ts'
import { BOX, eventOf, fakeThread, hubOf, instanceOf, NOTHING } from '../events/fake-thread.ts'

const GROUP = { id: 1, event: 'order.placed', name: 'group', kind: 'group' } as const

const slotOf = (epoch: number): OwnedSlot => ({ group: 1, slot: 3, epoch, state: 'held', inHand: 0 })

const rowOf = (seq: number, slot: OwnedSlot): StoredDelivery => ({
  seq,
  place: seq,
  thread: 1,
  event: eventOf(`evt_${seq}`, { key: 'van' }),
  expiresMs: 0,
  attempt: 1,
  deaths: 0,
  error: '',
  isBegun: false,
  retryMs: 0,
  crashes: 0,
  slot,
})

/** A hand with one subscriber, whose next attempt is much later. */
function handOf(t: TestContext) {
  const { hub } = hubOf(t, { chance: { ...SYSTEM_CHANCE, fraction: () => 1 } })
  const lane = fakeThread()
  hub.subscribe(GROUP.event, GROUP.name, { retries: 5, backoffMs: 60_000 }, instanceOf(lane))
  /** What was written, and the epochs of the slots that it was written for. */
  const noted: NotedDelivery[] = []
  const epochs: number[] = []
  const settler = new Settler({
    write: async (changes) => {
      noted.push(...changes.noted)
      epochs.push(...changes.fences!.slots.map(({ epoch }) => epoch))
      return { promoted: [], lost: [] }
    },
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    member: () => 7,
    log: (_, message) => assert.fail(message),
  })
  const reader: Reader = new Reader({
    store: {
      readGroup: () => ({ rows: [], readTo: 0 }),
      readKey: () => [],
      nextShares: () => [],
      readShares: () => [],
      passShare: () => 0,
      sharesOfKeys: () => [],
      takeTurns: () => {},
    },
    clock: SYSTEM_CLOCK,
    maxQueue: 100,
    isInHand: (seq) => hand.has(seq),
    isPaused: () => false,
    isSuspect: () => false,
    note: (row) => hand.note(row),
    untried: (seq) => hand.untried(seq),
    isTried: () => true,
    give: (of, row) => hand.give(of, row),
    onMalformed: () => assert.fail(),
    report: (_, message) => assert.fail(message),
  })
  const left: OwnedSlot[] = []
  const hand: Hand = new Hand({
    hub,
    reader,
    settler,
    clock: SYSTEM_CLOCK,
    deathsOf: null,
    isCancelled: () => false,
    isLeaseValid: () => true,
    onLeft: (slot) => {
      slot.inHand--
      left.push(slot)
    },
  })
  return { hub, lane, settler, hand, noted, epochs, left, cursor: reader.add(GROUP) }
}

/** How an attempt ends without success. */
const FAILURES: Record<string, (of: ReturnType<typeof handOf>) => void> = {
  fails: ({ hub, lane }) => hub.failed(lane.taken[0]!.id, { message: 'no van' }),
  'finds a tool away': ({ hub, lane }) => hub.failed(lane.taken[0]!.id, { message: 'no database', away: true }),
  'ends its thread': ({ hub, lane }) => hub.threadGone(lane, NOTHING, BOX),
}
const NOTES: Record<string, Partial<NotedDelivery>> = {
  fails: { attempt: 2, deaths: 0, error: 'no van' },
  'finds a tool away': { attempt: 1, deaths: 0, error: 'no database' },
  'ends its thread': { attempt: 1, deaths: 1 },
}

/** The same process gets the slot again, and the next delivery of the key. */
async function goesOn({ hub, lane, hand, cursor }: ReturnType<typeof handOf>): Promise<void> {
  const next = fakeThread()
  hub.subscribe(GROUP.event, GROUP.name, {}, instanceOf(next))
  hand.give(cursor, rowOf(2, slotOf(2)))
  await until(() => [...lane.events, ...next.events].includes('evt_2'), 'the next of the key begins')
}

for (const [what, fail] of Object.entries(FAILURES)) {
  test(`a delivery that ${what} while its slot drains leaves the hand once its attempt is noted`, async (t) => {
    const all = handOf(t)
    const slot = slotOf(1)
    all.hand.give(all.cursor, rowOf(1, slot))
    assert.deepEqual(all.lane.events, ['evt_1'])
    slot.state = 'draining'
    fail(all)
    assert.deepEqual([all.hand.size, slot.inHand], [1, 1], 'not before the commit')
    await all.settler.written()
    assert.deepEqual([all.hand.size, slot.inHand], [0, 0])
    const { attempt, deaths, error, dueMs } = NOTES[what] as NotedDelivery
    const [note] = all.noted
    assert.deepEqual(
      { ...note, retryMs: note!.retryMs > 0 },
      { seq: 1, attempt, deaths, error: error ?? '', isBegun: true, retryMs: what === 'fails', dueMs: dueMs ?? 0 },
    )
    assert.deepEqual(all.epochs, [1])
    await goesOn(all)
  })

  for (const state of ['lost', 'released'] satisfies SlotState[])
    test(`a delivery that ${what} after its slot is ${state} leaves the hand, and nothing is written`, async (t) => {
      const all = handOf(t)
      const slot = slotOf(1)
      all.hand.give(all.cursor, rowOf(1, slot))
      slot.state = state
      fail(all)
      assert.deepEqual([all.hand.size, slot.inHand], [0, 0])
      await all.settler.written()
      assert.deepEqual(all.noted, [])
      await goesOn(all)
    })
}

test('a delivery that fails in a slot that is held waits for its next attempt here', async (t) => {
  const all = handOf(t)
  const slot = slotOf(1)
  all.hand.give(all.cursor, rowOf(1, slot))
  FAILURES.fails!(all)
  await all.settler.written()
  assert.deepEqual([all.hand.size, slot.inHand, all.noted.length], [1, 1, 1])
})

for (const [what, end] of Object.entries({
  'is not given': ({ hand }) => hand.untried(1),
  'waits as the process ends': ({ hand }) => hand.takeBackTrials(),
  'runs as the process ends': ({ hand, cursor, row }) => {
    hand.give(cursor, row)
    hand.takeBackTrials()
  },
} satisfies Record<string, (of: ReturnType<typeof handOf> & { row: StoredDelivery }) => void>))
  test(`the death that is noted of a suspect is taken back in its slot when it ${what}`, async (t) => {
    const all = handOf(t)
    const slot = slotOf(1)
    const row = await all.hand.note({ ...rowOf(1, slot), crashes: 3 })
    assert.deepEqual([slot.inHand, all.noted.map(({ deaths }) => deaths)], [1, [1]], 'the slot is not released')
    end({ ...all, row })
    await all.settler.written()
    assert.deepEqual(
      all.noted.map(({ deaths }) => deaths),
      [1, 0],
    )
    assert.deepEqual(all.epochs, [1, 1], 'both notes name the slot')
    assert.equal(slot.inHand, all.hand.size)
  })

test('a row that a thread gives back has not begun, in its store, too', async (t) => {
  const all = handOf(t)
  const slot = slotOf(1)
  all.hand.give(all.cursor, { ...rowOf(1, slot), expiresMs: Number.MAX_SAFE_INTEGER })
  all.lane.hasRoom = false
  all.hub.unbegun([all.lane.taken[0]!.id])
  // It had begun in another process.
  all.lane.hasRoom = true
  all.hand.give(all.cursor, {
    ...rowOf(2, slot),
    event: eventOf('evt_2'),
    expiresMs: Number.MAX_SAFE_INTEGER,
    isBegun: true,
  })
  all.lane.hasRoom = false
  all.hub.unbegun(all.lane.taken.flatMap(({ id, event }) => (event === 'evt_2' ? [id] : [])))
  await all.settler.written()
  assert.deepEqual(
    all.noted.map(({ seq, isBegun }) => [seq, isBegun]),
    [
      [1, true],
      [1, false],
    ],
  )
})
