/** Rules of a log: what failed for good is a dead letter, which is replayed to its subscriber alone, or deleted. */
import assert from 'node:assert/strict'
import { handled, letterOf, notesOf, pause, waitFor } from './log-rule.ts'
import type { Rules } from './log-store.ts'

const BAD = ['unrecoverable'] as const

export const LETTERS = {
  'a dead letter has its event, its subscriber, its error, its attempts and the keys of its payload': async (
    log,
    tag,
  ) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, course: ['throw'] })
    const letter = await letterOf(log, process, id)
    assert.deepEqual(
      [letter.event, letter.event_id, letter.subscriber, letter.error, letter.attempts, letter.payload_keys.sort()],
      ['work', id, 'log.TakeWork', 'as it was told', 4, ['course', 'n', 'tag']],
    )
    await process.remove(letter)
  },

  'a handler that fails with a text that no database takes holds up nothing': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, key: tag, course: ['odd'] })
    const other = await process.publish('patient', { tag, n: 1, course: ['odd', 'wait 0'] })
    const letter = await letterOf(log, process, id)
    assert.match(letter.error, /^half of a smile/)
    await process.remove(letter)
    await handled(log, tag, 'patient', [other])
  },

  'a letter that is replayed is handled by its subscriber alone, and is gone': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, course: ['fail-once'] })
    const letter = await letterOf(log, process, id)
    assert.equal(await process.replay(letter), true)
    await handled(log, tag, 'work', [id])
    await waitFor(log, async () => (await process.letters()).every(({ event_id }) => event_id !== id), 'no letter')
    assert.equal(await process.replay(letter), false)
    assert.equal(notesOf(log, tag, 'work', 'begin').length, 2)
    assert.equal(notesOf(log, tag, 'too', 'begin').length, 1)
  },

  'a letter that is deleted is gone, and is not handled any more': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, course: BAD })
    const letter = await letterOf(log, process, id)
    assert.equal(await process.remove(letter), true)
    assert.equal(await process.remove(letter), false)
    assert.equal(await process.replay(letter), false)
    assert.ok(!(await process.letters()).some((each) => each.id === letter.id))
    await pause(100)
    assert.equal(notesOf(log, tag, 'work', 'begin').length, 1)
  },

  'a replay that fails again is a letter again': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, course: BAD })
    const letter = await letterOf(log, process, id)
    await process.replay(letter)
    const again = await waitFor(
      log,
      async () => (await process.letters()).find((each) => each.event_id === id && each.id !== letter.id),
      'the next letter',
    )
    assert.ok(!(await process.letters()).some((each) => each.id === letter.id))
    await process.remove(again)
  },
} satisfies Rules
