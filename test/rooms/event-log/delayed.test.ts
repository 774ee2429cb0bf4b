import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, STORES } from './databases.ts'

const MOVED_CLOCK = fileURLToPath(new URL('../../support/moved-clock.cjs', import.meta.url))
const HOUR_MS = 3_600_000
const COUNT = 2500
const REFUSED = 1000
/** The hub holds half of it at most. */
const ENV = { EVENT_BUS_DRIVER: 'database', EVENT_BUS_MAX_QUEUE: '1000', NODE_OPTIONS: `--require=${MOVED_CLOCK}` }

/** Rows of so many events are read, on a machine that has other work. */
const WAIT_MS = 60_000

const reminded = async (heddle: Heddle): Promise<number> => (await heddle.json('/reminders')).body.count

for (const [name, storeOf] of STORES) {
  test(`events for later, and retries that are due much later, leave the queue free, outlive a kill, and come in the order of their times (${name})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const { start, rows } = store
    const first = await start(ENV)
    // They are due in 20 minutes and the half hour after that.
    const later = { count: COUNT, atMs: Date.now() + HOUR_MS / 3 }
    assert.deepEqual(await post(first, '/reminders', later), { count: COUNT })
    assert.deepEqual(await post(first, '/refusals', { count: REFUSED }), { count: REFUSED })
    const hasRefused = async () => {
      const { refused, noticed } = (await first.json('/refusals')).body
      const unwritten = await rows(
        `SELECT seq FROM heddle_event WHERE is_split = 0 AND event = 'reminder.refused'
         UNION ALL SELECT seq FROM heddle_delivery WHERE attempt = 1`,
      )
      return refused === REFUSED && noticed === REFUSED && unwritten.length === 0
    }
    await until(hasRefused, 'all refused', WAIT_MS)
    await post(first, '/orders', { id: 'now' })
    await until(async () => (await handledBy(first)).length === 2, 'an event that is due now', WAIT_MS)
    assert.equal(await reminded(first), 0)
    await kill(first)
    const stored = await rows<{ payload: string }>(
      'SELECT payload FROM heddle_event WHERE due_ms > 0 ORDER BY due_ms, seq',
    )
    const expected: number[] = stored.map(({ payload }) => JSON.parse(payload).n)
    assert.equal(expected.length, COUNT)
    assert.ok(expected[0]! > expected.at(-1)!, 'the last one is due first')
    const left = await rows<{ payload: string }>("SELECT payload FROM heddle_event WHERE event = 'reminder.refused'")
    assert.ok(left.length > REFUSED / 2, `${left.length} wait for their next attempt`)

    const second = await start(ENV)
    // It waits until what the first one has left is read.
    const again = { event: 'order.taken', payload: { id: 'again' }, options: { key: 'one' } }
    await post(second, '/events', again)
    // What the first one had handled and not forgotten comes again, too.
    const isHandled = async () => (await handledBy(second)).some(({ order_id }) => order_id === 'again after')
    await until(isHandled, 'an event that is due now', WAIT_MS)
    assert.equal(await reminded(second), 0)
    second.process.kill('SIGUSR2')
    await until(async () => (await reminded(second)) >= COUNT, 'all reminders', WAIT_MS)
    const { order } = (await second.json('/reminders/order')).body
    assert.ok(isDeepStrictEqual(order, expected), 'in the order of their times')
    await until(async () => (await second.json('/refusals')).body.taken?.length >= left.length, 'all taken', WAIT_MS)
    await isEmpty(store)
    const { taken, refused, noticed } = (await second.json('/refusals')).body
    assert.deepEqual([refused, noticed], [0, 0])
    const byNumber = new Map(taken as [n: number, attempt: number][])
    assert.deepEqual(
      [taken.length, byNumber.size, new Set(byNumber.values())],
      [left.length, left.length, new Set([2])],
    )
    assert.equal(await second.stop(), 0)
  })
}
