/** Rules of a log that outlives its process: what was accepted, the order of keys, attempts, times and letters are there after `kill -9`. */
import assert from 'node:assert/strict'
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import { assertOrder, doubled, handled, letterOf, notesOf, numbers, orderOf, pause, waitFor } from './log-rule.ts'
import type { Rules } from './log-store.ts'

/** Of Redis: nothing is taken over because it has been idle for a while. */
const NEVER_CLAIMED = { EVENT_BUS_CLAIM_IDLE_MS: '86400000' }
/** The next process does not wait for that. */
const LONG_IDLE = { EVENT_BUS_CLAIM_IDLE_MS: '3600000' }
/** A log that counts the deaths of all that was in hand tries it together first, and then each alone. */
const DEATHS_MAX = 8
/** Of a process that holds few events, and when what does not fit is due at first, milliseconds. */
const QUEUE = 100
const LATER_MS = 15_000

export const OUTLIVES = {
  'what a killed process had accepted is handled by the next one, under its id': async (log, tag) => {
    const first = await log.process()
    const course = [`hold ${tag}` as const]
    const ids = await Promise.all(numbers(40).map((n) => first.publish('work', { tag, n, course })))
    await first.crash()
    log.letGo(tag)
    await log.open('second')
    await handled(log, tag, 'work', ids)
    await handled(log, tag, 'too', ids)
  },

  'what a killed process had is taken back by the next one of its name, twice as well': async (log, tag) => {
    const begun = () => notesOf(log, tag, 'work', 'begin').length
    const open = () => log.open('first', { env: NEVER_CLAIMED })
    let process = await open()
    // More than are taken over at a time.
    const works = numbers(250).map((n) => ({ tag, n, key: `${tag} ${n}`, course: [`hold ${tag}` as const] }))
    const ids = await process.burst('work', works)
    for (const _ of numbers(2)) {
      const before = begun()
      await process.crash()
      process = await open()
      await waitFor(log, () => begun() > before, 'they are in hand again')
    }
    log.letGo(tag)
    await handled(log, tag, 'work', ids)
    assert.deepEqual(await process.letters(), [])
  },

  'an event that ends its process each time is a dead letter in the end, and what was in hand with it is handled':
    async (log, tag) => {
      const open = () => log.open('first', { env: NEVER_CLAIMED })
      let process = await open()
      const hold = `hold ${tag}` as const
      const bad = await process.publish('work', { tag, n: 0, course: [[hold, 'kill']] })
      const others = await Promise.all(
        numbers(6).map((n) => process.publish('work', { tag, n: n + 1, course: [[hold, 'wait 300']] })),
      )
      await waitFor(log, () => notesOf(log, tag, 'work', 'begin').length === 7, 'all are in hand')
      log.letGo(tag)
      const letterOrDeath = async (): Promise<DeadLetter | 'death' | undefined> => {
        const letters = await process.letters().catch(() => [])
        const found = letters.find(({ event_id, subscriber }) => event_id === bad && subscriber === 'log.TakeWork')
        return found ?? (process.isGone ? 'death' : undefined)
      }
      let deaths = 0
      for (;;) {
        const next = await waitFor(log, letterOrDeath, 'the dead letter, or the next death')
        if (next !== 'death') {
          assert.match(next.error, /died 3 times|delivered 6 times/)
          assert.ok(next.attempts >= 3, `${next.attempts} attempts`)
          break
        }
        assert.ok(++deaths <= DEATHS_MAX, `${deaths} deaths`)
        // It may die as it starts.
        process = await open().catch(() => process)
      }
      assert.ok(deaths >= 3, `${deaths} deaths`)
      await handled(log, tag, 'work', others)
      for (const { event_id } of await process.letters()) assert.equal(event_id, bad)
    },

  'what several processes have died with keeps its place, and is left to the next one by a process that ends': async (
    log,
    tag,
  ) => {
    const begun = () => notesOf(log, tag, 'work', 'begin').length
    const open = () => log.open('first', { env: { ...NEVER_CLAIMED, SHUTDOWN_TIMEOUT_MS: '30000' } })
    const ids: string[] = []
    let process = await open()
    const publish = async (n: number, key?: string): Promise<void> => {
      ids.push(
        await process.publish('work', { tag, n, key, course: [`hold ${tag}`] }, key === undefined ? {} : { key }),
      )
    }
    for (const n of numbers(3)) await publish(n, tag)
    for (const n of numbers(3)) await publish(n)
    for (const turn of numbers(3)) {
      await waitFor(log, () => begun() > 0, 'they are in hand')
      // After one death it is under no suspicion: it may go by itself.
      if (turn === 2) await publish(3, tag)
      await process.crash()
      const before = begun()
      process = await open()
      await waitFor(log, () => begun() > before, 'one is tried again')
    }
    const ending = process.stop()
    await pause(500)
    log.letGo(tag)
    assert.equal(await ending, 0)
    process = await open()
    await handled(log, tag, 'work', ids)
    assert.deepEqual(
      notesOf(log, tag, 'work').flatMap(({ n, key }) => (key === tag ? [n] : [])),
      numbers(4),
    )
    assert.deepEqual(await process.letters(), [])
  },

  'the order of a key outlives its process': async (log, tag) => {
    const first = await log.process()
    const ids = await first.burst(
      'work',
      numbers(80).map((n) => ({ tag, n, key: `${tag} ${n % 4}`, course: ['wait 5'] })),
    )
    await waitFor(log, () => notesOf(log, tag, 'work').length > 10, 'some handled')
    await first.crash()
    const second = await log.open('second')
    for (const n of numbers(8)) ids.push(await second.publish('work', { tag, n: 80 + n }, { key: `${tag} ${n % 4}` }))
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'), ['first'])
  },

  'the number of an attempt outlives its process': async (log, tag) => {
    const first = await log.process()
    const ids = await Promise.all(numbers(10).map((n) => first.publish('patient', { tag, n, course: ['throw', []] })))
    const begun = (id: string) => notesOf(log, tag, 'patient', 'begin').filter((note) => note.id === id)
    await waitFor(log, () => ids.every((id) => begun(id).length > 0), 'all tried')
    const isNoted = async () => (await log.noted('onPatient')) + notesOf(log, tag, 'patient').length >= ids.length
    await waitFor(log, isNoted, 'attempts that are noted')
    await first.crash()
    await log.open('second')
    await handled(log, tag, 'patient', ids)
    // The second one is made again where the end of it was not noted.
    for (const id of ids)
      assert.match(
        begun(id)
          .map(({ attempt }) => attempt)
          .join(),
        /^1(,2)+$/,
      )
  },

  'the time of an event for later outlives its process': async (log, tag) => {
    const first = await log.process()
    const dueMs = performance.now() + 4000
    const id = await first.publish('work', { tag, n: 0 }, { delayMs: 4000 })
    await first.crash()
    await log.open('second')
    await handled(log, tag, 'work', [id])
    assert.ok(performance.now() >= dueMs - 5, 'not before')
  },

  'what is for later, and what is tried again later, leaves room for what is due, and comes in the order of its times':
    async (log, tag) => {
      const open = (name: string) => log.open(name, { env: { EVENT_BUS_MAX_QUEUE: String(QUEUE) } })
      const turns = numbers(4)
      let process = await open('first')
      const failing = numbers(QUEUE).map((n) => ({ tag, n, course: ['throw' as const, []] }))
      const refused = await process.burst('patient', failing)
      await waitFor(log, () => notesOf(log, tag, 'patient', 'begin').length >= QUEUE, 'all have failed')
      const ids: string[] = []
      let keys: string[] = []
      // Until all of it is stored, and read by the next process, before the first is due: what is due by then comes as it was published.
      for (const laterMs of doubled(LATER_MS)) {
        keys = numbers(2).map((n) => `${tag} ${laterMs} ${n}`)
        const apartMs = laterMs / (2 * turns.length)
        const dueMs = performance.now() + laterMs
        let isInTime = true
        // The last ones are due first.
        for (const turn of turns) {
          const works = numbers(QUEUE / 2).map((n) => ({ tag, n: turn, key: keys[n % 2]! }))
          const beforeMs = performance.now()
          const delayMs = Math.max(0, Math.round(dueMs - turn * apartMs - beforeMs))
          ids.push(...(await process.burst('work', works, delayMs)))
          // Each is later by as much as it took to get there.
          isInTime &&= performance.now() - beforeMs < apartMs
        }
        await handled(log, tag, 'too', [await process.publish('work', { tag, n: -1 })])
        await process.crash()
        process = await open(`next-${laterMs}`)
        // With a key it comes behind all that was left.
        await handled(log, tag, 'too', [await process.publish('work', { tag, n: -2 }, { key: `${tag} ${laterMs}` })])
        isInTime &&= performance.now() < dueMs - turns.at(-1)! * apartMs
        if (isInTime) break
      }
      await handled(log, tag, 'work', ids)
      for (const key of keys) {
        const order = notesOf(log, tag, 'work').flatMap((note) => (note.key === key ? [note.n] : []))
        assert.deepEqual(order, order.toSorted().reverse(), key)
      }
      await handled(log, tag, 'patient', refused)
    },

  'a lifetime outlives its process': async (log, tag) => {
    const first = await log.process()
    const held = await first.publish('work', { tag, n: 0, course: [`hold ${tag}`] }, { key: tag })
    await first.publish('work', { tag, n: 1 }, { key: tag, ttlMs: 500 })
    await first.crash()
    await pause(600)
    log.letGo(tag)
    const second = await log.open('second')
    const last = await second.publish('work', { tag, n: 2 }, { key: tag })
    await handled(log, tag, 'work', [held, last])
    assert.ok(!notesOf(log, tag, 'work', 'begin').some(({ n }) => n === 1), 'it begins after its time')
  },

  'what was begun in time is done after the death of its process, also when its time is over': async (log, tag) => {
    const first = await log.process()
    const begun = () => notesOf(log, tag, 'work', 'begin')
    const isNoted = async () => begun().length > 0 && (await log.noted('onWork')) >= begun().length
    for (const ttlMs of doubled(2000)) {
      const overMs = performance.now() + ttlMs
      await first.publish('work', { tag, n: 0, course: [`hold ${tag}`] }, { ttlMs })
      await waitFor(log, async () => performance.now() > overMs || (await isNoted()), 'it is begun, or over')
      // On a busy machine it may not be begun in time: then another one lives longer.
      if (!(await isNoted())) continue
      await first.crash()
      await pause(Math.max(0, overMs - performance.now()))
      break
    }
    log.letGo(tag)
    await log.open('second')
    await handled(log, tag, 'work', [begun()[0]!.id])
  },

  'a dead letter outlives its process, and is replayed by the next one': async (log, tag) => {
    const first = await log.process()
    const id = await first.publish('work', { tag, n: 0, course: ['unrecoverable'] })
    await letterOf(log, first, id)
    await first.crash()
    const second = await log.open('second')
    const letter = await letterOf(log, second, id)
    assert.equal(await second.replay(letter), true)
    await waitFor(log, () => notesOf(log, tag, 'work', 'begin').length === 2, 'the replay')
  },

  'a parked key outlives its process, and goes on in its order': async (log, tag) => {
    const first = await log.process()
    const bad = await first.publish('parked', { tag, n: 0, course: ['unrecoverable'] }, { key: tag })
    const ids: string[] = []
    for (const n of numbers(5)) ids.push(await first.publish('parked', { tag, n: n + 1 }, { key: tag }))
    const letter = await letterOf(log, first, bad)
    await handled(log, tag, 'parked-too', ids)
    await first.crash()
    const second = await log.open('second')
    for (const n of numbers(5)) ids.push(await second.publish('parked', { tag, n: n + 6 }, { key: tag }))
    await handled(log, tag, 'parked-too', ids)
    assert.deepEqual(
      notesOf(log, tag, 'parked', 'begin').map(({ n }) => n),
      [0],
    )
    assert.equal(await second.edit(letter, { tag, n: 0, key: tag }), true)
    assert.equal(await second.replay(letter), true)
    await handled(log, tag, 'parked', [bad, ...ids])
    assert.deepEqual(
      notesOf(log, tag, 'parked').map(({ n }) => n),
      numbers(11),
    )
  },

  'what a stop has no time for is handled by the next process': async (log, tag) => {
    const first = await log.open('first', { env: { ...LONG_IDLE, SHUTDOWN_TIMEOUT_MS: '500' } })
    const ids = await Promise.all(numbers(10).map((n) => first.publish('work', { tag, n, course: [`hold ${tag}`] })))
    assert.equal(await first.stop(), 0)
    log.letGo(tag)
    await log.open('second', { env: LONG_IDLE })
    await handled(log, tag, 'work', ids)
  },

  'what waits for room as its process ends is handled by the next one, each once': async (log, tag) => {
    const first = await log.process()
    // No longer than the time limit of a subscriber.
    const courseOf = (n: number) => (n < 2 ? [`hold ${tag}` as const] : ['wait 400' as const])
    const ids = await first.burst(
      'bounded',
      numbers(9).map((n) => ({ tag, n, course: courseOf(n) })),
    )
    const held = () => notesOf(log, tag, 'bounded', 'begin').filter(({ n }) => n < 2)
    await waitFor(log, () => held().length === 2, 'the first two')
    const ending = first.stop()
    await waitFor(log, () => first.isDraining, 'the drain')
    log.letGo(tag)
    assert.equal(await ending, 0)
    await log.open('second')
    await handled(log, tag, 'bounded', ids)
    assert.equal(notesOf(log, tag, 'bounded').length, 9)
  },

  'what nobody subscribes to is gone after a kill': async (log, tag) => {
    const first = await log.process()
    await Promise.all(numbers(50).map((n) => first.publish('nobody', { tag, n })))
    await first.crash()
    const second = await log.open('second')
    await Promise.all(numbers(50).map((n) => second.publish('nobody', { tag, n })))
  },
} satisfies Rules
