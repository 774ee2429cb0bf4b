import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReaderWakeups } from '../../../src/primary/streams/reading-thread.ts'
import { streamOf } from '../../../src/runtime/streams/keys.ts'
import { until } from '../../support/until.ts'

const STREAM = streamOf('e')

class Thread {
  isResponsive = true
  readonly woken: string[] = []
  wake(event: string): void {
    this.woken.push(event)
  }
}

/** These threads read event `e` as group `g`; all that is there by now is read, and they sleep. */
async function asleep(count: number) {
  const wakeups = new ReaderWakeups(() => {})
  const threads = Array.from({ length: count }, () => new Thread())
  for (const thread of threads) wakeups.add(thread, 'e', 'g')
  await until(() => threads.some(({ woken }) => woken.length > 0), 'one is woken for what may be there')
  for (const thread of threads) {
    wakeups.idle(thread, 'e', '1-0')
    thread.woken.length = 0
  }
  const wokenFor = (): string[][] => threads.map(({ woken }) => woken)
  return { wakeups, threads, wokenFor }
}

test('a thread that begins to read is woken, since there may be entries; one thread per group is enough', async () => {
  const wakeups = new ReaderWakeups(() => {})
  const [one, other, third] = [new Thread(), new Thread(), new Thread()]
  wakeups.add(one, 'e', 'g')
  wakeups.add(other, 'e', 'g')
  wakeups.add(third, 'e', 'broadcast')
  await until(() => third.woken.length > 0, 'they are woken')
  assert.deepEqual([[...one.woken, ...other.woken], third.woken], [['e'], ['e']])
})

test('a stream is watched from the entry up to which its sleeping groups have read, and not while they read', async () => {
  const { wakeups, threads } = await asleep(2)
  assert.deepEqual([...wakeups.streamsToWatch()], [[STREAM, '1-0']])
  wakeups.arrived(STREAM, '2-0')
  assert.deepEqual([...wakeups.streamsToWatch()], [])
  const [reads] = threads.filter(({ woken }) => woken.length > 0)
  wakeups.idle(reads!, 'e', '7-0')
  assert.deepEqual([...wakeups.streamsToWatch()], [[STREAM, '7-0']])
})

test('an entry wakes one thread of each group that has not read it, each in its turn', async () => {
  const { wakeups, threads, wokenFor } = await asleep(2)
  wakeups.arrived(STREAM, '1-0')
  wakeups.arrived(streamOf('other'), '9-0')
  assert.deepEqual(wokenFor(), [[], []])
  for (const upTo of ['2-0', '3-0']) {
    wakeups.arrived(STREAM, upTo)
    for (const thread of threads) wakeups.idle(thread, 'e', upTo)
  }
  assert.deepEqual(wokenFor(), [['e'], ['e']])
})

test('a thread that finds more than it can read at a time is helped by one that sleeps', async () => {
  const { wakeups, threads, wokenFor } = await asleep(2)
  wakeups.arrived(STREAM, '2-0')
  const [reads] = threads.filter(({ woken }) => woken.length > 0)
  wakeups.more(reads!, 'e')
  assert.deepEqual(wokenFor(), [['e'], ['e']])
  wakeups.more(reads!, 'e')
  assert.deepEqual(wokenFor(), [['e'], ['e']])
})

test('another thread reads when the one that was woken stands still, has no room, or is gone', async () => {
  for (const fails of ['standsStill', 'full', 'gone'] as const) {
    const { wakeups, threads } = await asleep(2)
    wakeups.arrived(STREAM, '2-0')
    const [reads] = threads.filter(({ woken }) => woken.length > 0)
    const [other] = threads.filter((thread) => thread !== reads)
    if (fails === 'standsStill') reads!.isResponsive = false
    if (fails === 'full') wakeups.full(reads!, 'e', true)
    else wakeups[fails](reads!)
    await until(() => other!.woken.length === 1, `another is woken: ${fails}`)
  }
})

test('while no thread can be woken for a group, it is tried again', async () => {
  const { wakeups, threads } = await asleep(1)
  threads[0]!.isResponsive = false
  wakeups.arrived(STREAM, '2-0')
  assert.deepEqual([...wakeups.streamsToWatch()], [])
  threads[0]!.isResponsive = true
  await until(() => threads[0]!.woken.length === 1, 'it is woken when it answers again')
})

test('a full thread reads on by itself: it counts as awake when it has room again', async () => {
  const { wakeups, threads } = await asleep(1)
  wakeups.arrived(STREAM, '2-0')
  wakeups.full(threads[0]!, 'e', true)
  wakeups.full(threads[0]!, 'e', false)
  assert.deepEqual([...wakeups.streamsToWatch()], [])
  wakeups.idle(threads[0]!, 'e', '2-0')
  await until(
    () => wakeups.streamsToWatch().size === 1 || threads[0]!.woken.length === 2,
    'it sleeps, or is woken once more',
  )
  wakeups.close()
})

test('a group that nobody here reads any more is not watched', async () => {
  const { wakeups, threads } = await asleep(1)
  wakeups.remove(threads[0]!, 'e', 'g')
  assert.deepEqual([...wakeups.streamsToWatch()], [])
  wakeups.arrived(STREAM, '2-0')
  assert.deepEqual(threads[0]!.woken, [])
})

test('once it is closed nobody is woken any more', async () => {
  const { wakeups, threads } = await asleep(1)
  wakeups.close()
  wakeups.wakeAll()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual(threads[0]!.woken, [])
})
