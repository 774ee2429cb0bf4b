import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  ancestorsBelow,
  ancestorsIn,
  GENERATIONS_MAX,
  lineageOf,
  lineageText,
} from '../../../src/core/causality/ancestors.ts'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { CANCEL_KEPT_MS, Cancels, isMeant, lateOf, type Meant } from '../../../src/runtime/events/cancelling.ts'
import { checkCancel } from '../../../src/tools/event-bus/options.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

const idOf = (n: number): string => `evt_${n.toString(16).padStart(32, '0')}`

/** Event n of a chain: n - 1 has caused it. */
function chain(length: number): Meant[] {
  const events: Meant[] = []
  for (let n = 0; n < length; n++) {
    const parent = events.at(-1)
    const parentId = parent?.id ?? null
    const ancestors = parent === undefined ? '' : ancestorsBelow(parent)
    events.push({ id: idOf(n), event: 'a.b', key: null, unique: null, parentId, ancestors })
  }
  return events
}

test('an event knows the events above it, sixteen generations far', () => {
  const events = chain(GENERATIONS_MAX + 3)
  assert.deepEqual(
    events.slice(0, 4).map(({ ancestors }) => ancestors),
    ['', '', idOf(0), `${idOf(1)} ${idOf(0)}`],
  )
  for (const [n, { id }] of events.entries()) {
    const reached = events.flatMap((event, at) => (isMeant({ id, causedToo: true }, event) ? [at] : []))
    const most = Math.min(events.length - 1, n + GENERATIONS_MAX)
    assert.deepEqual(
      reached,
      Array.from({ length: most - n + 1 }, (_, k) => n + k),
    )
  }
})

test('the events above one go through a text, and ids of others are not mistaken for several', () => {
  for (const { parentId, ancestors } of chain(GENERATIONS_MAX + 3))
    assert.deepEqual(lineageOf(lineageText({ parentId, ancestors })), { parentId, ancestors })
  for (const parentId of ['evt_a b', `${idOf(1)} `, `${idOf(1)} x`, 'evt_"', ' ', '', `${idOf(1)} ${idOf(2)}x`]) {
    assert.deepEqual(lineageOf(parentId), { parentId, ancestors: '' })
    assert.equal(ancestorsBelow({ parentId, ancestors: idOf(3) }), idOf(3))
    assert.equal(ancestorsIn(parentId), '')
  }
  assert.equal(ancestorsIn(`${idOf(1)} ${idOf(2)}`), `${idOf(1)} ${idOf(2)}`)
  assert.equal(ancestorsIn(Array.from({ length: GENERATIONS_MAX }, (_, n) => idOf(n)).join(' ')), '')
  for (const other of [undefined, null, 7, {}]) assert.equal(ancestorsIn(other), '')
})

test('what a tree publishes is meant until its time is over, whatever its number', () => {
  const cancels = new Cancels()
  const [root, child, grandchild] = chain(3) as [Meant, Meant, Meant]
  assert.equal(cancels.add({ id: root.id, causedToo: true }, Number.POSITIVE_INFINITY, 100), true)
  assert.equal(cancels.add({ id: root.id, causedToo: true }, Number.POSITIVE_INFINITY, 100), false)
  for (const event of [root, child, grandchild]) {
    assert.equal(cancels.has(event, 1_000_000, 100), true)
    assert.equal(cancels.has(event, 1_000_000, 101), false)
  }
  assert.equal(cancels.has({ ...child, id: idOf(9), parentId: idOf(8) }, 1, 1), false)
  // Taken back once more: for longer.
  assert.equal(cancels.add({ id: root.id, causedToo: true }, Number.POSITIVE_INFINITY, 200), true)
  assert.equal(cancels.has(grandchild, 1, 150), true)
})

test('causedToo is for an id', () => {
  const id = idOf(1)
  assert.deepEqual(checkCancel(id, { causedToo: true }), { id, causedToo: true })
  assert.equal(checkCancel(id, { causedToo: false }), id)
  assert.equal(checkCancel(id, undefined), id)
  const refused = { code: 'EVENT_OPTIONS_INVALID' }
  assert.throws(() => checkCancel({ event: 'a.b' }, { causedToo: true }), refused)
  assert.throws(() => checkCancel(id, { causedToo: 'yes' }), refused)
  for (const odd of [`${id}'`, `${id} ${id}`, '%', `evt_${'F'.repeat(32)}`])
    assert.throws(() => checkCancel(odd, { causedToo: true }), refused)
})

test('in memory, what a cancelled tree publishes is not delivered for ten minutes, and others are', (t: TestContext) => {
  let nowMs = 0
  const { hub } = hubOf(t, { clock: { ...SYSTEM_CLOCK, steadyMs: () => nowMs } })
  const thread = fakeThread()
  hub.subscribe('a.b', 'g', {}, instanceOf(thread))
  const [root, child] = chain(2) as [Meant, Meant]
  const publish = (event: Meant) => hub.publish(eventOf(event.id, { ...event, event: 'a.b', unique: null }), null)
  publish(root)
  assert.deepEqual(hub.cancelMeant({ id: root.id, causedToo: true }), { waiting: 0, running: 1 })
  assert.equal(publish(child), child.id)
  publish({ ...child, id: idOf(7), parentId: null })
  assert.deepEqual(thread.events, [root.id, idOf(7)])
  nowMs = CANCEL_KEPT_MS + 1
  publish({ ...child, id: idOf(8) })
  assert.deepEqual(thread.events, [root.id, idOf(7), idOf(8)])
})

test('a replay goes past the cancels before it, with what it causes, until the next', () => {
  const [root, leaf, child] = [1, 2, 3].map((n) => `evt_${String(n).padStart(32, '0')}`)
  const at = (id: string, parentId: string | null, ancestors = '') => ({
    id,
    parentId,
    ancestors,
    event: 'a.b',
    key: null,
    unique: null,
  })
  const cancels = new Cancels()
  cancels.add({ id: root!, causedToo: true }, Number.POSITIVE_INFINITY)
  const [replayed, below, beside] = [at(leaf!, root!), at(child!, leaf!, root!), at('other', root!)]
  assert.deepEqual(
    [replayed, below, beside].map((each) => cancels.has(each, 1)),
    [true, true, true],
  )
  cancels.revive(replayed)
  assert.deepEqual(
    [replayed, below, beside].map((each) => cancels.has(each, 1)),
    [false, false, true],
  )
  cancels.add(lateOf({ id: root!, causedToo: true }), Number.POSITIVE_INFINITY)
  assert.equal(cancels.has(below, 1), false)
  cancels.add({ id: root!, causedToo: true }, Number.POSITIVE_INFINITY)
  assert.equal(cancels.has(below, 1), true)
})
