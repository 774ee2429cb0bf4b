/** Rules of a log: what is accepted is delivered, again where it fails, and when it is due. */
import assert from 'node:assert/strict'
import { handled, letterOf, notesOf, numbers, pause, waitFor } from './log-rule.ts'
import type { Rules } from './log-store.ts'

export const DELIVERY = {
  'what is accepted is handled once by each of its groups, under its id': async (log, tag) => {
    const process = await log.process()
    const ids = await Promise.all(numbers(100).map((n) => process.publish('work', { tag, n })))
    for (const group of ['work', 'too']) {
      const notes = await handled(log, tag, group, ids)
      assert.deepEqual(notes.map(({ n, id }) => `${n} ${id}`).sort(), ids.map((id, n) => `${n} ${id}`).sort())
    }
  },

  'an attempt that failed because a tool was away does not count': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('bounded', { tag, n: 0, course: ['away 2'] })
    await handled(log, tag, 'bounded', [id])
    assert.deepEqual(
      notesOf(log, tag, 'bounded', 'begin').map(({ attempt }) => attempt),
      [1, 1, 1],
    )
  },

  'what fails is tried again with the number of its attempt, until it succeeds': async (log, tag) => {
    const process = await log.process()
    const id = await process.publish('work', { tag, n: 0, course: ['throw', 'throw', []] })
    await handled(log, tag, 'work', [id])
    assert.deepEqual(
      notesOf(log, tag, 'work', 'begin').map(({ attempt }) => attempt),
      [1, 2, 3],
    )
    assert.equal(notesOf(log, tag, 'too', 'begin').length, 1, 'the other subscriber had it once')
  },

  'what fails at each of its attempts, and what is unrecoverable at once, is tried no more': async (log, tag) => {
    const process = await log.process()
    const ids = [
      await process.publish('work', { tag, n: 0, course: ['throw'] }),
      await process.publish('work', { tag, n: 1, course: ['unrecoverable'] }),
    ]
    for (const id of ids) await letterOf(log, process, id)
    const attempts = notesOf(log, tag, 'work', 'begin').map(({ n, attempt }) => `${n}: ${attempt}`)
    assert.deepEqual(attempts.sort(), ['0: 1', '0: 2', '0: 3', '0: 4', '1: 1'])
  },

  'what one event waits for holds up no other': async (log, tag) => {
    const process = await log.process()
    const held = await process.publish('work', { tag, n: 0, course: [`hold ${tag}`] })
    const others = await Promise.all(numbers(20).map((n) => process.publish('work', { tag, n: n + 1 })))
    await handled(log, tag, 'work', others)
    assert.ok(!notesOf(log, tag, 'work').some(({ id }) => id === held))
    log.letGo(tag)
    await handled(log, tag, 'work', [held])
  },

  'an event for later comes when it is due': async (log, tag) => {
    const process = await log.process()
    const startMs = performance.now()
    const id = await process.publish('work', { tag, n: 0 }, { delayMs: 600 })
    const soon = await process.publish('work', { tag, n: 1 })
    await handled(log, tag, 'work', [soon])
    await waitFor(log, () => notesOf(log, tag, 'work').some((note) => note.id === id), 'the event for later')
    assert.ok(performance.now() - startMs >= 595, 'not before')
    assert.equal(notesOf(log, tag, 'work').length, 2)
  },

  'an event whose time is up is not begun': async (log, tag) => {
    const process = await log.process()
    const first = await process.publish('work', { tag, n: 0, course: [`hold ${tag}`] }, { key: tag })
    const late = await process.publish('work', { tag, n: 1 }, { key: tag, ttlMs: 100 })
    const last = await process.publish('work', { tag, n: 2 }, { key: tag })
    await waitFor(log, () => notesOf(log, tag, 'work', 'begin').length > 0, 'the first one')
    await pause(200)
    log.letGo(tag)
    await handled(log, tag, 'work', [first, last])
    assert.ok(!notesOf(log, tag, 'work', 'begin').some(({ id }) => id === late))
  },

  'a subscriber has no more in hand than its concurrency': async (log, tag) => {
    const process = await log.process()
    const course = ['wait 20'] as const
    const ids = await Promise.all(numbers(12).map((n) => process.publish('bounded', { tag, n, course })))
    await handled(log, tag, 'bounded', ids)
    let most = 0
    const open = new Map<string, number>()
    for (const { what, process: by } of log.notes(tag)) {
      open.set(by, (open.get(by) ?? 0) + (what === 'begin' ? 1 : -1))
      most = Math.max(most, open.get(by)!)
    }
    assert.equal(most, 2)
  },

  'what a handler publishes has the event that it handles as its parent': async (log, tag) => {
    const process = await log.process()
    const child = `${tag}: child`
    const id = await process.publish('work', { tag, n: 0, course: [`publish ${child}`] })
    await waitFor(log, () => notesOf(log, child, 'too').length > 0, 'the child')
    assert.equal(notesOf(log, child, 'too')[0]!.parent, id)
  },
} satisfies Rules
