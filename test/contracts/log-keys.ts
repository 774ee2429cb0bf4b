/** Rules of a log: the events of a key are handled one at a time, in the order in which they were published. */
import assert from 'node:assert/strict'
import { assertOrder, doubled, handled, letterOf, notesOf, numbers, orderOf } from './log-rule.ts'
import type { Rules } from './log-store.ts'

export const KEYS = {
  'events of a key are handled one at a time and in their order, published together or one by one': async (
    log,
    tag,
  ) => {
    const process = await log.process()
    const works = numbers(80).map((n) => ({ tag, n, key: `${tag} ${n % 4}`, course: ['wait 1' as const] }))
    const ids = await process.burst('work', works)
    for (const n of numbers(20)) ids.push(await process.publish('work', { tag, n: 80 + n }, { key: `${tag} ${n % 4}` }))
    await handled(log, tag, 'work', ids)
    await handled(log, tag, 'too', ids)
    for (const group of ['work', 'too']) assertOrder(orderOf(log, tag, group))
    assert.ok(
      new Set(notesOf(log, tag, 'work').map(({ thread }) => thread)).size > 1,
      'more lanes than one had a share',
    )
  },

  'an event that is tried again keeps its place': async (log, tag) => {
    const process = await log.process()
    const ids: string[] = []
    for (const n of numbers(12)) {
      ids.push(
        await process.publish('work', { tag, n, course: n % 3 === 0 ? ['throw', 'throw', []] : [] }, { key: tag }),
      )
    }
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'))
  },

  'a key, and a group of it, waits for no other': async (log, tag) => {
    const process = await log.process()
    const held = await process.publish('work', { tag, n: 0, course: [`hold ${tag}`] }, { key: `${tag} held` })
    const behind = await process.publish('work', { tag, n: 1 }, { key: `${tag} held` })
    const others = await process.burst(
      'work',
      numbers(20).map((n) => ({ tag, n: n + 2, key: `${tag} ${n}` })),
    )
    await handled(log, tag, 'work', others)
    await handled(log, tag, 'too', [held, behind])
    assert.equal(
      notesOf(log, tag, 'work', 'begin').some(({ id }) => id === behind),
      false,
    )
    log.letGo(tag)
    await handled(log, tag, 'work', [held, behind])
  },

  'a dead letter lets its key go on, where its subscriber does not park': async (log, tag) => {
    const process = await log.process()
    const bad = await process.publish('work', { tag, n: 0, course: ['unrecoverable'] }, { key: tag })
    const next = await process.publish('work', { tag, n: 1 }, { key: tag })
    await handled(log, tag, 'work', [next])
    await letterOf(log, process, bad)
  },

  'an event for later holds up none of its key': async (log, tag) => {
    const process = await log.process()
    const later: string[] = []
    for (const laterMs of doubled(800)) {
      const key = `${tag} ${laterMs}`
      const dueMs = performance.now() + laterMs
      later.push(await process.publish('work', { tag, n: 0 }, { key, delayMs: laterMs }))
      await handled(log, tag, 'work', [await process.publish('work', { tag, n: 1 }, { key })])
      if (performance.now() < dueMs) break
    }
    await handled(log, tag, 'work', later)
  },

  'events of a key for later come one at a time in the order of their times': async (log, tag) => {
    const process = await log.process()
    const ids: string[] = []
    let key = ''
    for (const laterMs of doubled(2000)) {
      key = `${tag} ${laterMs}`
      const apartMs = laterMs / 5
      const firstMs = performance.now() + laterMs
      let isInTime = true
      for (const n of [3, 2, 1, 0]) {
        const beforeMs = performance.now()
        const delayMs = Math.max(0, Math.round(firstMs + n * apartMs - beforeMs))
        ids.push(await process.publish('work', { tag, n, course: ['wait 500'] }, { key, delayMs }))
        isInTime &&= performance.now() < Math.min(firstMs, beforeMs + apartMs)
      }
      if (isInTime) break
    }
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work').filter((note) => note.key === key))
  },
} satisfies Rules
