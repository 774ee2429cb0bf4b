/** Rules of a log: where a subscriber parks, the key of a dead letter waits for what becomes of it. */
import assert from 'node:assert/strict'
import { handled, letterOf, notesOf, numbers, orderOf, waitFor } from './log-rule.ts'
import type { LogProcess, LogStore, Rules } from './log-store.ts'

const FOLLOWERS = 4
const BAD = ['unrecoverable'] as const

/** A letter, and events of its key behind it. */
async function park(log: LogStore, process: LogProcess, tag: string, key = tag) {
  const bad = await process.publish('parked', { tag, n: 0, course: BAD }, { key })
  const followers: string[] = []
  for (const n of numbers(FOLLOWERS)) followers.push(await process.publish('parked', { tag, n: n + 1 }, { key }))
  return { bad, followers, letter: await letterOf(log, process, bad, 'TakeWork') }
}

const begun = (log: LogStore, tag: string) => notesOf(log, tag, 'parked', 'begin').map(({ n }) => n)
const INORDER = numbers(FOLLOWERS).map((n) => n + 1)

export const PARKING = {
  'what follows a parked letter waits, and other keys and subscribers go on': async (log, tag) => {
    const process = await log.process()
    const { bad, followers, letter } = await park(log, process, tag)
    const other = await process.publish('parked', { tag, n: 9 }, { key: `${tag} other` })
    await handled(log, tag, 'parked-too', [bad, ...followers])
    await handled(log, tag, 'parked', [other])
    assert.deepEqual(begun(log, tag), [0, 9])
    assert.equal(letter.parked, true)
    await process.remove(letter)
    await handled(log, tag, 'parked', followers)
    assert.deepEqual(begun(log, tag), [0, 9, ...INORDER])
  },

  'a letter that is edited and replayed comes before what waits for it': async (log, tag) => {
    const process = await log.process()
    const { bad, followers, letter } = await park(log, process, tag)
    assert.equal(await process.edit(letter, { tag, n: 0, key: tag }), true)
    assert.equal(await process.replay(letter), true)
    await handled(log, tag, 'parked', [bad, ...followers])
    assert.deepEqual(begun(log, tag), [0, 0, ...INORDER])
    assert.equal(notesOf(log, tag, 'parked-too').filter(({ id }) => id === bad).length, 1)
  },

  'while a replay fails again the others wait': async (log, tag) => {
    const process = await log.process()
    const { followers, letter } = await park(log, process, tag)
    assert.equal(await process.replay(letter), true)
    const again = await waitFor(
      log,
      async () =>
        (await process.letters()).find(
          (each) => each.event_id === letter.event_id && each.id !== letter.id && each.replay === undefined,
        ),
      'the next letter',
    )
    assert.deepEqual(begun(log, tag), [0, 0])
    await process.remove(again)
    await handled(log, tag, 'parked', followers)
    assert.deepEqual(begun(log, tag), [0, 0, ...INORDER])
  },

  'many parked keys go on in their order, whatever becomes of their letters': async (log, tag) => {
    const process = await log.process()
    const keys = numbers(30).map((n) => `${tag} ${n}`)
    const parked = await Promise.all(keys.map((key) => park(log, process, tag, key)))
    await Promise.all(
      parked.map(async ({ letter }, n) => {
        if (n % 2 === 0) return process.remove(letter)
        await process.edit(letter, { tag, n: 0, key: keys[n] })
        return process.replay(letter)
      }),
    )
    await handled(
      log,
      tag,
      'parked',
      parked.flatMap(({ bad, followers }, n) => (n % 2 === 0 ? followers : [bad, ...followers])),
    )
    for (const [index, key] of keys.entries()) {
      const order = orderOf(log, tag, 'parked').flatMap((note) =>
        note.key === key && note.what === 'begin' ? [note.n] : [],
      )
      assert.deepEqual(order, [0, ...(index % 2 === 0 ? [] : [0]), ...INORDER], key)
    }
  },
} satisfies Rules
