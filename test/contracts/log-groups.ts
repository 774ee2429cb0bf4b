/** Rules of a log: a group that no process has for a while gets what it has missed. */
import assert from 'node:assert/strict'
import { handled, notesOf, numbers } from './log-rule.ts'
import type { Rules } from './log-store.ts'

export const GROUPS = {
  'a group that is missing for a while gets all of it, in the order of the key, and the others nothing twice': async (
    log,
    tag,
  ) => {
    const first = await log.process()
    const ids = [await first.publish('work', { tag, n: 0 }, { key: tag })]
    await handled(log, tag, 'work', ids)
    assert.equal(await first.stop(), 0)
    const second = await log.open('second', { without: 'work' })
    for (const n of numbers(10)) ids.push(await second.publish('work', { tag, n: n + 1 }, { key: tag }))
    await handled(log, tag, 'too', ids)
    assert.equal(notesOf(log, tag, 'work').length, 1)
    assert.equal(await second.stop(), 0)
    const third = await log.open('third')
    ids.push(await third.publish('work', { tag, n: 11 }, { key: tag }))
    await handled(log, tag, 'work', ids)
    assert.deepEqual(
      notesOf(log, tag, 'work').map(({ n }) => n),
      numbers(12),
    )
    await handled(log, tag, 'too', ids)
    assert.equal(notesOf(log, tag, 'too').length, 12)
  },

  'what waits for a missing group outlives the processes without it': async (log, tag) => {
    const first = await log.process()
    await handled(log, tag, 'work', [await first.publish('work', { tag, n: 0 })])
    assert.equal(await first.stop(), 0)
    const second = await log.open('second', { without: 'work' })
    const ids = await Promise.all(numbers(5).map((n) => second.publish('work', { tag, n: n + 1 })))
    await handled(log, tag, 'too', ids)
    await second.crash()
    const third = await log.open('third', { without: 'work' })
    ids.push(await third.publish('work', { tag, n: 6 }))
    await handled(log, tag, 'too', ids)
    await third.crash()
    await log.open('fourth')
    await handled(log, tag, 'work', ids)
  },
} satisfies Rules
