import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sleepers } from '../../src/primary/streams/reader-wakeups.ts'
import { streamOf } from '../../src/runtime/streams/keys.ts'
import { until } from '../support/heddle.ts'

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
  const sleepers = new Sleepers(() => {})
  const threads = Array.from({ length: count }, () => new Thread())
  for (const thread of threads) sleepers.add(thread, 'e', 'g')
  await until(() => threads.some(({ woken }) => woken.length > 0), 'one is woken for what may be there')
  for (const thread of threads) {
    sleepers.idle(thread, 'e', '1-0')
    thread.woken.length = 0
  }
  const wokenFor = (): string[][] => threads.map(({ woken }) => woken)
  return { sleepers, threads, wokenFor }
}

test('whoever begins to read is woken for what may be there; one thread per group is enough', async () => {
  const sleepers = new Sleepers(() => {})
  const [one, other, third] = [new Thread(), new Thread(), new Thread()]
  sleepers.add(one, 'e', 'g')
  sleepers.add(other, 'e', 'g')
  sleepers.add(third, 'e', 'broadcast')
  await until(() => third.woken.length > 0, 'they are woken')
  assert.deepEqual([[...one.woken, ...other.woken], third.woken], [['e'], ['e']])
})

test('a stream is watched from the entry on up to which its sleeping groups have read, and not while they read', async () => {
  const { sleepers, threads } = await asleep(2)
  assert.deepEqual([...sleepers.asleep()], [[STREAM, '1-0']])
  sleepers.arrived(STREAM, '2-0')
  assert.deepEqual([...sleepers.asleep()], [])
  const [reads] = threads.filter(({ woken }) => woken.length > 0)
  sleepers.idle(reads!, 'e', '7-0')
  assert.deepEqual([...sleepers.asleep()], [[STREAM, '7-0']])
})

test('an entry wakes one thread of each group that has not read it, each in its turn', async () => {
  const { sleepers, threads, wokenFor } = await asleep(2)
  sleepers.arrived(STREAM, '1-0')
  sleepers.arrived(streamOf('other'), '9-0')
  assert.deepEqual(wokenFor(), [[], []])
  for (const upTo of ['2-0', '3-0']) {
    sleepers.arrived(STREAM, upTo)
    for (const thread of threads) sleepers.idle(thread, 'e', upTo)
  }
  assert.deepEqual(wokenFor(), [['e'], ['e']])
})

test('who finds more than it can read at a time has one that sleeps help', async () => {
  const { sleepers, threads, wokenFor } = await asleep(2)
  sleepers.arrived(STREAM, '2-0')
  const [reads] = threads.filter(({ woken }) => woken.length > 0)
  sleepers.more(reads!, 'e')
  assert.deepEqual(wokenFor(), [['e'], ['e']])
  sleepers.more(reads!, 'e')
  assert.deepEqual(wokenFor(), [['e'], ['e']])
})

test('what a thread was woken for another reads when it stands still, has its hands full, or is gone', async () => {
  for (const fails of ['still', 'full', 'gone'] as const) {
    const { sleepers, threads } = await asleep(2)
    sleepers.arrived(STREAM, '2-0')
    const [reads] = threads.filter(({ woken }) => woken.length > 0)
    const [other] = threads.filter((thread) => thread !== reads)
    if (fails === 'still') reads!.isResponsive = false
    if (fails === 'full') sleepers.full(reads!, 'e', true)
    else sleepers[fails](reads!)
    await until(() => other!.woken.length === 1, `another is woken: ${fails}`)
  }
})

test('while nobody can be woken for a group it is tried again', async () => {
  const { sleepers, threads } = await asleep(1)
  threads[0]!.isResponsive = false
  sleepers.arrived(STREAM, '2-0')
  assert.deepEqual([...sleepers.asleep()], [])
  threads[0]!.isResponsive = true
  await until(() => threads[0]!.woken.length === 1, 'it is woken when it answers again')
})

test('who is full reads on by itself: it counts as awake when it has room again', async () => {
  const { sleepers, threads } = await asleep(1)
  sleepers.arrived(STREAM, '2-0')
  sleepers.full(threads[0]!, 'e', true)
  sleepers.full(threads[0]!, 'e', false)
  assert.deepEqual([...sleepers.asleep()], [])
  sleepers.idle(threads[0]!, 'e', '2-0')
  await until(() => sleepers.asleep().size === 1 || threads[0]!.woken.length === 2, 'it sleeps, or is woken once more')
  sleepers.close()
})

test('a group that nobody here reads any more is not watched', async () => {
  const { sleepers, threads } = await asleep(1)
  sleepers.remove(threads[0]!, 'e', 'g')
  assert.deepEqual([...sleepers.asleep()], [])
  sleepers.arrived(STREAM, '2-0')
  assert.deepEqual(threads[0]!.woken, [])
})

test('once it is closed nobody is woken any more', async () => {
  const { sleepers, threads } = await asleep(1)
  sleepers.close()
  sleepers.wakeAll()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual(threads[0]!.woken, [])
})
