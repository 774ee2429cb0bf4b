/** Rules of a log over the life of one process: its first events, its lanes that end, and what is left of it all. */
import assert from 'node:assert/strict'
import { assertOrder, handled, letterOf, notesOf, numbers, orderOf, waitFor } from './log-rule.ts'
import type { Note, Rules, Step } from './log-store.ts'

export const LANES = {
  'the first burst of a lane keeps the order of its keys': async (log, tag) => {
    const process = await log.process()
    const works = numbers(200).map((n) => ({ tag, n, key: `${tag} ${n % 4}` }))
    await handled(log, tag, 'work', await process.burst('work', works))
    assertOrder(orderOf(log, tag, 'work'))
  },

  'what is handled, and what nobody subscribes to, leaves nothing behind': async (log, tag) => {
    const process = await log.process()
    const ids = await Promise.all(numbers(20).map((n) => process.publish('work', { tag, n })))
    await Promise.all(numbers(20).map((n) => process.publish('nobody', { tag, n })))
    await process.publish('nobody', { tag, n: 0 }, { delayMs: 50 })
    await handled(log, tag, 'work', ids)
  },

  'one slow subscriber does not stop the others': async (log, tag) => {
    const process = await log.open('first', { env: { EVENT_BUS_MAX_QUEUE: '400' } })
    const works = numbers(280).map((n) => ({ tag, n, course: [`hold ${tag}` as const] }))
    const slow = await process.burst('bounded', works)
    const idle = await process.publish('work', { tag, n: 0 })
    await handled(log, tag, 'work', [idle])
    assert.equal(notesOf(log, tag, 'bounded').length, 0)
    log.letGo(tag)
    await handled(log, tag, 'bounded', slow)
  },

  'what was in hand when its lane ended is handed to the next one': async (log, tag) => {
    const process = await log.process()
    // It holds until the answer is here: that is the lane's, too.
    const id = await process.publish('work', { tag, n: 0, course: [[`hold ${tag}`, 'exit-once']] })
    log.letGo(tag)
    await handled(log, tag, 'work', [id])
    assert.deepEqual(
      notesOf(log, tag, 'work', 'begin').map(({ attempt }) => attempt),
      [1, 1],
    )
  },

  'a lane that ends keeps the order of its keys': async (log, tag) => {
    const process = await log.process()
    const works = numbers(60).map((n) => ({
      tag,
      n,
      key: `${tag} ${n % 4}`,
      course: [[`hold ${tag}` as const, ...(n === 9 ? ['exit-once' as const] : [])]],
    }))
    const ids = await process.burst('work', works)
    log.letGo(tag)
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'))
  },

  'a subscriber has no more in hand than its concurrency, also when a lane dies of one of them': async (log, tag) => {
    const process = await log.process()
    const courseOf = (n: number): Step[] => [`hold ${tag}`, n === 3 ? 'exit-once' : 'wait 20']
    const ids = await Promise.all(numbers(20).map((n) => process.publish('bounded', { tag, n, course: [courseOf(n)] })))
    log.letGo(tag)
    await handled(log, tag, 'bounded', ids)
    const notes = orderOf(log, tag, 'bounded')
    // What a thread has in hand as it dies ends with its last note.
    const endOf = ({ id, thread }: Note): number => {
      const at = notes.findIndex((note) => note.what === 'end' && note.id === id && note.thread === thread)
      return at < 0 ? notes.findLastIndex((note) => note.thread === thread) : at
    }
    const begun = notes.flatMap((note, from) => (note.what === 'begin' ? [{ from, to: endOf(note) }] : []))
    for (const at of notes.keys()) {
      const inHand = begun.filter(({ from, to }) => from <= at && at < to).length
      assert.ok(inHand <= 2, `${inHand} at a time`)
    }
  },

  'an event that ends each lane that has it is a dead letter after three deaths, and its neighbours are handled':
    async (log, tag) => {
      // Over Redis a busy machine must not make it idle in between.
      const process = await log.open('first', { env: { EVENT_BUS_CLAIM_IDLE_MS: '60000' } })
      const courseOf = (n: number): Step[] => [`hold ${tag}`, ...(n === 0 ? (['exit'] as const) : [])]
      const [bad, ...others] = await Promise.all(
        numbers(20).map((n) => process.publish('work', { tag, n, course: [courseOf(n)] })),
      )
      log.letGo(tag)
      const begun = () => notesOf(log, tag, 'work', 'begin').filter(({ id }) => id === bad)
      await waitFor(log, () => begun().length === 3, 'three deaths')
      await handled(log, tag, 'work', others)
      const { subscriber, error, black_box } = await letterOf(log, process, bad!)
      assert.deepEqual([subscriber, black_box?.reason, black_box?.steps], ['log.TakeWork', 'exited', []])
      assert.match(error, /died 3 times/)
      assert.equal(begun().length, 3)
    },
} satisfies Rules
