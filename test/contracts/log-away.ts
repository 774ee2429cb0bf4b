/** Rules of a log on a server that goes away and comes back. */
import assert from 'node:assert/strict'
import {
  assertOrder,
  handled,
  isEmpty,
  type Load,
  notesOf,
  numbers,
  orderOf,
  pause,
  underLoad,
  waitFor,
} from './log-rule.ts'
import type { LogStore, Rule, Rules } from './log-store.ts'

const AWAY_MS = 4000

async function outage(log: LogStore, isFrozen: boolean): Promise<void> {
  if (isFrozen) log.server!.freeze()
  else await log.server!.stop()
  await pause(AWAY_MS)
  if (isFrozen) log.server!.thaw()
  else await log.server!.start()
}

/** @param isFrozen the server stands still, rather than ends */
const overOutage =
  (isFrozen: boolean): Rule =>
  async (log, tag) => {
    assert.ok(log.server, 'a server')
    const more = ({ accepted }: Load): Promise<unknown> => {
      const enough = accepted.length + 20
      return waitFor(log, () => accepted.length > enough, 'more events accepted')
    }
    const ids = await underLoad(tag, [await log.process()], async (load) => {
      await more(load)
      await outage(log, isFrozen)
      await more(load)
    })
    await handled(log, tag, 'work', ids)
    assertOrder(orderOf(log, tag, 'work'))
    await isEmpty(log)
  }

/** @param isFrozen the server stands still, rather than ends */
const inHand =
  (isFrozen: boolean): Rule =>
  async (log, tag) => {
    const processes = await Promise.all([log.open('first'), log.open('second')])
    await log.together(2)
    const course = [`wait ${AWAY_MS + 5500}` as const]
    const ids = await Promise.all(numbers(40).map((n) => processes[n % 2]!.publish('work', { tag, n, course })))
    const begun = () => notesOf(log, tag, 'work', 'begin').length
    await waitFor(log, () => begun() === 40, 'all begun')
    await outage(log, isFrozen)
    await handled(log, tag, 'work', ids)
    await isEmpty(log)
    assert.equal(begun(), 40)
  }

export const AWAY = {
  'what was accepted before and after an outage is handled, in the order of its keys': overOutage(false),

  'so is what was accepted before and after the server stood still': overOutage(true),

  'what is in hand while the server stands still is given to nobody else, and runs once': inHand(true),

  'so is what is in hand while the server is gone, whoever is connected to it first': inHand(false),

  'what a process that ends while the server stands still could not end is handled by the next one': async (
    log,
    tag,
  ) => {
    const first = await log.open('first', { env: { SHUTDOWN_TIMEOUT_MS: '5000' } })
    const course = ['wait 500' as const]
    const ids = await Promise.all(numbers(20).map((n) => first.publish('work', { tag, n, course })))
    log.server!.freeze()
    // Its code says whether it could tell the server.
    assert.notEqual(await first.stop(), null)
    log.server!.thaw()
    await log.open('second')
    await handled(log, tag, 'work', ids)
  },

  'an outage uses up no attempt of what needs the server, but for one that it cuts off': async (log, tag) => {
    const process = await log.process()
    const ids = await Promise.all(numbers(20).map((n) => process.publish('asking', { tag, n }, { delayMs: 1000 })))
    await log.server!.stop()
    await pause(1000 + AWAY_MS)
    await log.server!.start()
    await handled(log, tag, 'asking', ids)
    for (const { attempt } of notesOf(log, tag, 'asking')) assert.ok(attempt <= 2, `attempt ${attempt}`)
    assert.deepEqual(await process.letters(), [])
  },
} satisfies Rules
