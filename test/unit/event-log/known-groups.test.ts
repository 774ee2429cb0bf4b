// Which groups are forgotten with what waits for them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GROUP_KEPT_MS, KnownGroups, type KnownGroupsOptions } from '../../../src/primary/event-log/known-groups.ts'

const HOUR_MS = 3_600_000
const START_MS = 1_800_000_000_000

/** A process without the group `shop.Send`, which has been here so long ago. */
function withoutSend({ isShared = false, seenAgoMs = 0, released = 0 } = {}) {
  const time = { nowMs: START_MS, steadyMs: 0 }
  const rows = [{ event: 'order.paid', group: 'shop.Send', seenMs: START_MS - seenAgoMs }]
  const forgotten: string[] = []
  const log = {
    isShared,
    memory: { isOpen: true },
    clock: { nowMs: () => time.nowMs, steadyMs: () => time.steadyMs, turn: (run: () => void) => run() },
    groups: async () => rows,
    released: async () => [],
    countReleased: async () => rows.map(({ event, group }) => ({ event, group, count: released })),
    deleteGroup: async ({ group }: { group: string }) => void forgotten.push(group),
    deleteWaiting: async () => 0,
  }
  const settle = (_: 'groups', { group, seenMs }: { group: string; seenMs: number | null }): void => {
    const row = rows.find((each) => each.group === group)
    if (row !== undefined && seenMs !== null) row.seenMs = seenMs
  }
  const groups = new KnownGroups({
    hub: { hasConsumer: () => false },
    log,
    settler: { settle, written: async () => {} },
    maxStored: 100,
    onReturned: () => {},
    onForgotten: () => {},
    report: () => {},
  } as unknown as KnownGroupsOptions)
  /** So much time has passed by the clock, and by the steady one. */
  const pass = async (ms: number, steadyMs = ms): Promise<void> => {
    time.nowMs += ms
    time.steadyMs += steadyMs
    await groups.look(time.nowMs)
  }
  const publish = (count: number): void => {
    for (let n = 0; n < count; n++) groups.waits('order.paid', 'shop.Send')
  }
  return { groups, forgotten, pass, publish }
}

test('a group is forgotten when nobody has had it for 7 days, and not because the clock was set forward', async () => {
  const { groups, forgotten, pass } = withoutSend()
  await groups.learn()
  groups.begin(START_MS)
  await pass(GROUP_KEPT_MS + HOUR_MS, 60_000)
  await pass(GROUP_KEPT_MS - HOUR_MS)
  assert.deepEqual(forgotten, [])
  await pass(2 * HOUR_MS)
  assert.deepEqual(forgotten, ['shop.Send'])
})

test('where the log is half full a group that another process has is not forgotten, whatever was given on to it', async () => {
  const { groups, forgotten, pass, publish } = withoutSend({ isShared: true, released: 3 })
  await groups.learn()
  await pass(3000)
  publish(80)
  await pass(3000)
  assert.deepEqual([groups.waiting, forgotten], [3, []])
})

test('one that nobody has is, where as much waits for it: alone at once, beside others when they would have said that it is there', async () => {
  for (const [options, isForgotten] of [
    [{}, true],
    [{ isShared: true, released: 80 }, false],
    [{ isShared: true, released: 80, seenAgoMs: 3 * HOUR_MS }, true],
  ] as const) {
    const { groups, forgotten, pass, publish } = withoutSend(options)
    await groups.learn()
    publish(80)
    await pass(60_000)
    assert.equal(forgotten.length === 1, isForgotten, JSON.stringify(options))
  }
})
