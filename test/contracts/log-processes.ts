/** Rules of a log that several processes share: each event is one process's, and what one leaves is another one's. */
import assert from 'node:assert/strict'
import {
  assertOrder,
  doubled,
  handled,
  isEmpty,
  LOAD_KEYS,
  type Load,
  letterOf,
  notesOf,
  numbers,
  orderOf,
  pause,
  underLoad,
  waitFor,
} from './log-rule.ts'
import type { LogProcess, LogStore, Rules } from './log-store.ts'

const PARKED = 20
/** What is accepted is looked at for so long after the end of another process, milliseconds. */
const AFTER_MS = 5000

async function two(log: LogStore): Promise<[LogProcess, LogProcess]> {
  const opened = await Promise.all([log.open('first'), log.open('second')])
  await log.together(2)
  return opened as [LogProcess, LogProcess]
}

const more = (log: LogStore, { accepted }: Load): Promise<unknown> => {
  const enough = accepted.length + 60
  return waitFor(log, () => accepted.length > enough, 'more events accepted')
}

export const PROCESSES = {
  'what a killed process had in hand, and what it had for later, is taken over by another one': async (log, tag) => {
    const [first] = await two(log)
    const course = [`hold ${tag}` as const]
    const ids = await Promise.all(numbers(30).map((n) => first.publish('work', { tag, n, course })))
    ids.push(await first.publish('work', { tag, n: 30 }, { delayMs: 2000 }))
    await first.crash()
    log.letGo(tag)
    await handled(log, tag, 'work', ids)
  },

  'what several processes publish is handled once, by one of them': async (log, tag) => {
    const processes = await two(log)
    const ids = await Promise.all(numbers(100).map((n) => processes[n % 2]!.publish('work', { tag, n })))
    await handled(log, tag, 'work', ids)
    assert.equal(notesOf(log, tag, 'work').length, 100)
  },

  'the order of a key holds over the processes that publish it': async (log, tag) => {
    const processes = await two(log)
    const ids: string[] = []
    const publish = async (key: string): Promise<void> => {
      for (const n of numbers(20))
        ids.push(await processes[n % 2]!.publish('work', { tag, n, course: ['wait 2'] }, { key }))
    }
    await Promise.all(numbers(LOAD_KEYS).map((n) => publish(`${tag} ${n}`)))
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'))
    assert.equal(new Set(orderOf(log, tag, 'work').map(({ process }) => process)).size, 2, 'both have a part')
  },

  'the order of a key holds while one of several processes is killed, and the next one comes': async (log, tag) => {
    const living = await two(log)
    const killed: string[] = []
    const ids = await underLoad(tag, living, async (load) => {
      for (const turn of numbers(3)) {
        await more(log, load)
        const [victim] = living.splice(turn % 2, 1)
        killed.push(victim!.name)
        await victim!.crash()
        living.push(await log.open(`next-${turn}`))
      }
    })
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'), killed)
  },

  'the order of a key holds while processes come, and end in order': async (log, tag) => {
    const living = [await log.open('first')]
    // Handled for as long as the next one takes to come: what is published meanwhile waits behind it.
    const long = numbers(LOAD_KEYS).map((n) => ({ tag, n: -1, key: `${tag} ${n}`, course: ['wait 5000' as const] }))
    await living[0]!.burst('work', long)
    const ids = await underLoad(tag, living, async (load) => {
      for (const turn of numbers(3)) {
        living.push(await log.open(`next-${turn}`))
        await more(log, load)
        const [leaving] = living.splice(0, 1)
        assert.equal(await leaving!.stop(), 0)
      }
    })
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'))
  },

  'while one of two processes ends in order, the other one goes on': async (log, tag) => {
    const living = await two(log)
    let gaps = 0
    const ids = await underLoad(tag, living, async (load) => {
      await more(log, load)
      const [leaving] = living.splice(0, 1)
      assert.equal(await leaving!.stop(), 0)
      await pause(AFTER_MS)
      await more(log, load)
      gaps = load.gaps
    })
    const { length } = await handled(log, tag, 'work', ids)
    assert.equal(length, new Set(notesOf(log, tag, 'work').map(({ id }) => id)).size, 'each once')
    assert.equal(gaps, 0, 'always something accepted')
    assertOrder(orderOf(log, tag, 'work'))
  },

  'what a frozen process had is taken over, and when it wakes it changes nothing': async (log, tag) => {
    const [first] = await two(log)
    const ids = await Promise.all(
      numbers(10).map((n) => first.publish('work', { tag, n, course: [`hold ${tag}`] }, { key: `${tag} ${n}` })),
    )
    await waitFor(log, () => notesOf(log, tag, 'work', 'begin').length === 10, 'all begun')
    first.freeze()
    log.letGo(tag)
    await handled(log, tag, 'work', ids)
    await isEmpty(log)
    first.thaw()
    const last = await (await log.open('third')).publish('work', { tag, n: 10 })
    await handled(log, tag, 'work', [last])
  },

  'a handler that blocks its thread for longer than others wait is not robbed, and runs once': async (log, tag) => {
    const [first] = await two(log)
    const id = await first.publish('work', { tag, n: 0, course: ['block 2500'] })
    await handled(log, tag, 'work', [id])
    assert.equal(notesOf(log, tag, 'work', 'begin').length, 1)
  },

  'events for later that several processes have are handled once, those of a key in the order of their times': async (
    log,
    tag,
  ) => {
    const processes = await two(log)
    const ids: string[] = []
    let key = ''
    for (const laterMs of doubled(2500)) {
      key = `${tag} ${laterMs}`
      const apartMs = laterMs / 40
      const firstMs = Date.now() + laterMs
      const publish = async (n: number, options: { key?: string } = {}): Promise<void> => {
        const at = new Date(firstMs + n * apartMs)
        ids.push(await processes[n % 3 === 0 ? 0 : 1]!.publish('work', { tag, n, ...options }, { ...options, at }))
      }
      let isInTime = true
      for (const n of numbers(30)) {
        const beforeMs = Date.now()
        await Promise.all([publish(2 * n, { key }), publish(2 * n + 1)])
        isInTime &&= Date.now() < Math.min(firstMs, beforeMs + 2 * apartMs)
      }
      if (isInTime) break
    }
    await handled(log, tag, 'work', ids)
    assert.equal(notesOf(log, tag, 'work').length, ids.length)
    assertOrder(orderOf(log, tag, 'work').filter((note) => note.key === key))
  },

  'what one process publishes reaches a subscriber that another one alone has': async (log, tag) => {
    const worker = await log.open('worker')
    // A process knows the subscribers that were there before it.
    const web = await log.open('web', { without: 'work' })
    await log.together(2)
    const ids = await Promise.all(numbers(20).map((n) => web.publish('work', { tag, n })))
    const notes = await handled(log, tag, 'work', ids)
    assert.ok(notes.every(({ process }) => process === worker.name))
    await handled(log, tag, 'too', ids)
  },

  'a burst of slow work that one process has published is shared': async (log, tag) => {
    const [first] = await two(log)
    const slow = numbers(40).map((n) => first.publish('bounded', { tag, n, course: ['wait 100'] }))
    const notes = await handled(log, tag, 'bounded', await Promise.all(slow))
    assert.equal(notes.length, 40, 'each once')
    const ofOther = notes.filter(({ process }) => process === 'second').length
    assert.ok(ofOther >= 8, `the second one has ${ofOther} of 40`)
  },

  'work for a subscriber that was made later is not given to a process that does not know it': async (log, tag) => {
    const [late] = await Promise.all([log.open('late'), log.open('second')])
    await log.together(2)
    const slow = numbers(40).map((n) => late!.publish('late', { tag, n, course: ['wait 50'] }))
    const notes = await handled(log, tag, 'late', await Promise.all(slow))
    assert.equal(notes.length, 40, 'each once')
  },

  'a broadcast reaches the threads of each process, in the order of its key': async (log, tag) => {
    const processes = [await log.open('first'), await log.open('second', { env: { LANES: '2' } })]
    await log.together(2)
    for (const n of numbers(10)) await processes[n % 2]!.publish('told', { tag, n }, { key: tag })
    await waitFor(log, () => notesOf(log, tag, 'told').length === 30, 'all three')
    const threads = new Map<string, number[]>()
    for (const { process, thread, n } of notesOf(log, tag, 'told', 'begin')) {
      const name = `${process} ${thread}`
      threads.set(name, [...(threads.get(name) ?? []), n])
    }
    assert.deepEqual([...threads.keys()].map((name) => name.split(' ')[0]).sort(), ['first', 'second', 'second'])
    for (const begun of threads.values()) assert.deepEqual(begun, numbers(10))
  },

  'a letter is listed, replayed and deleted by any process': async (log, tag) => {
    const [first, second] = await two(log)
    const ids = await Promise.all(numbers(2).map((n) => first.publish('work', { tag, n, course: ['unrecoverable'] })))
    const [one, other] = await Promise.all(ids.map((id) => letterOf(log, second, id)))
    const replays = await Promise.all([first, second, second].map((process) => process.replay(one!)))
    assert.deepEqual(replays.sort(), [false, false, true])
    assert.equal(await second.remove(other!), true)
    await waitFor(log, () => notesOf(log, tag, 'work', 'begin').length === 3, 'the replay')
    await waitFor(
      log,
      async () => (await first.letters()).every(({ event_id }) => event_id === one!.event_id),
      'one letter',
    )
  },

  'parked keys go on in their order, whichever process replays or deletes their letters': async (log, tag) => {
    const processes = await two(log)
    const parked = await Promise.all(
      numbers(PARKED).map(async (index) => {
        const key = `${tag} ${index}`
        const bad = await processes[index % 2]!.publish('parked', { tag, n: 0, course: ['unrecoverable'] }, { key })
        const ids: string[] = []
        for (const n of numbers(4)) ids.push(await processes[n % 2]!.publish('parked', { tag, n: n + 1 }, { key }))
        return { key, bad, ids, letter: await letterOf(log, processes[0], bad, 'TakeWork') }
      }),
    )
    await handled(
      log,
      tag,
      'parked-too',
      parked.flatMap(({ bad, ids }) => [bad, ...ids]),
    )
    assert.equal(notesOf(log, tag, 'parked', 'begin').length, PARKED, 'the others wait')
    await Promise.all(
      parked.map(async ({ key, letter }, index) => {
        const process = processes[(index >> 1) % 2]!
        if (index % 2 === 0) return process.remove(letter)
        await process.edit(letter, { tag, n: 0, key })
        return process.replay(letter)
      }),
    )
    const expected = parked.flatMap(({ bad, ids }, index) => (index % 2 === 0 ? ids : [bad, ...ids]))
    await handled(log, tag, 'parked', expected)
    for (const [index, { key }] of parked.entries()) {
      const begun = notesOf(log, tag, 'parked', 'begin').flatMap((note) => (note.key === key ? [note.n] : []))
      assert.deepEqual(begun, index % 2 === 0 ? [0, 1, 2, 3, 4] : [0, 0, 1, 2, 3, 4], key)
    }
  },

  'what nobody subscribes to is gone, when one of two processes is killed, too': async (log, tag) => {
    const [first, second] = await two(log)
    await Promise.all(
      numbers(100).map((n) =>
        (n % 2 === 0 ? first : second).publish('nobody', { tag, n }, n % 3 === 0 ? { key: `${n}` } : {}),
      ),
    )
    await first.crash()
    await Promise.all(numbers(20).map((n) => second.publish('nobody', { tag, n })))
  },
} satisfies Rules
