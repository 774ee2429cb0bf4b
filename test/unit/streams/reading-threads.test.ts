import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Claimer } from '../../../src/primary/streams/claimer.ts'
import type { GroupProvisioner } from '../../../src/primary/streams/group-provisioner.ts'
import { ReaderWakeups } from '../../../src/primary/streams/reading-thread.ts'
import { DeadConsumers, ReadingThreads, type StreamLane } from '../../../src/primary/streams/reading-threads.ts'
import type { StreamCommand } from '../../../src/transport/stream-messages.ts'

const SUBSCRIPTION = { plugin: 'Shop', event: 'e', identity: 'Shop.on', options: {}, subscriberIndex: 0 }

function threads(t: TestContext) {
  const taken: string[] = []
  const opened: string[] = []
  const destroyed: string[] = []
  const claimer: Partial<Claimer> = {
    claimFromConsumer: async (_stream, _group, consumer) => taken.push(consumer),
  }
  const groups: Partial<GroupProvisioner> = {
    open: async (thread, { group }) => void opened.push(`${group} for ${thread.consumer}`),
    destroy: ({ group }) => destroyed.push(group),
  }
  const wakeups = new ReaderWakeups(() => {})
  t.after(() => wakeups.close())
  const all = new ReadingThreads({
    replica: 'r',
    lanes: 2,
    own: lane(-1),
    wakeups,
    groups: groups as GroupProvisioner,
    deadConsumers: new DeadConsumers(claimer as Claimer, () => true),
  })
  return { all, taken, opened, destroyed }
}

function lane(index: number): StreamLane & { told: StreamCommand[] } {
  const told: StreamCommand[] = []
  const send = (command: StreamCommand): void => void told.push(command)
  return { index, told, isResponsive: true, send, instanceOf: () => null, stopped: () => {} }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a lane reads as the consumer of its number, with what is paused, and has its groups opened; one that came before the start too', async (t) => {
  const { all, opened } = threads(t)
  const [early, late] = [lane(0), lane(1)]
  all.laneUp(early, [SUBSCRIPTION])
  all.pause('Shop', true)
  assert.deepEqual(opened, [])
  all.start()
  all.laneUp(late, [SUBSCRIPTION])
  await settled()
  assert.deepEqual(late.told, [
    { kind: 'pause', plugin: 'Shop', isPaused: true },
    { kind: 'start', consumer: 'r:1' },
  ])
  assert.deepEqual(opened, ['Shop.on for r:0', 'Shop.on for r:1'])
  assert.deepEqual(all.consumers(), ['r:primary', 'r:0', 'r:1'])
  assert.equal(all.areStarted, true)
})

test('the pending entries of a lane are claimed when it is gone, and its groups are still looked after', async (t) => {
  const { all, taken, destroyed } = threads(t)
  const gone = lane(0)
  all.start()
  const thread = all.laneUp(gone, [
    SUBSCRIPTION,
    { ...SUBSCRIPTION, identity: 'Shop.all', options: { broadcast: true }, subscriberIndex: 1 },
  ])
  all.laneGone(thread, null)
  await settled()
  assert.deepEqual([taken, destroyed], [['r:0'], ['Shop.all@r:0']])
  assert.deepEqual(all.streamGroups(), [])
  assert.deepEqual(
    all.pendingStreamGroups().map(({ group }) => group),
    ['Shop.on'],
  )
  assert.equal(all.isReading('r:0'), false)
})

test('the name of a lane that is gone is not used for a minute: entries that it gets late would count as handled', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { all } = threads(t)
  const lanes = [lane(0), lane(1), lane(0), lane(0)]
  all.start()
  const first = all.laneUp(lanes[0]!, [SUBSCRIPTION])
  all.laneUp(lanes[1]!, [SUBSCRIPTION])
  all.laneGone(first, null)
  await settled()
  const third = all.laneUp(lanes[2]!, [SUBSCRIPTION])
  assert.deepEqual(all.consumers(), ['r:primary', 'r:1', 'r:2'])
  assert.deepEqual(all.deadConsumers(), ['r:0'])
  t.mock.timers.tick(60_000)
  all.laneGone(third, null)
  await settled()
  all.laneUp(lanes[3]!, [SUBSCRIPTION])
  assert.deepEqual(all.consumers(), ['r:primary', 'r:1', 'r:0'])
  assert.deepEqual(all.deadConsumers(), ['r:2'])
})

test('a lane that reads the same group twice leaves it with the second of its subscribers', async (t) => {
  const { all, destroyed } = threads(t)
  const busy = lane(0)
  const options = { broadcast: true, group: 'g' }
  all.start()
  const thread = all.laneUp(busy, [
    { ...SUBSCRIPTION, options },
    { ...SUBSCRIPTION, options, subscriberIndex: 1 },
  ])
  all.unsubscribe(thread, 0)
  assert.deepEqual([all.streamGroups().length, destroyed], [1, []])
  all.unsubscribe(thread, 1)
  all.unsubscribe(thread, 1)
  assert.deepEqual([all.streamGroups().length, destroyed], [0, ['g@r:0']])
})
