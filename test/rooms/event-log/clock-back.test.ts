import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { setClock } from '../../support/servers/set-clock.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, STORES } from './databases.ts'

const HOUR_MS = 3_600_000
const WAIT_MS = 30_000

/** How far the clock of a process is behind this one's, milliseconds. */
const isBehind = async (heddle: Heddle): Promise<number> =>
  Date.now() - Date.parse((await heddle.fetch('/orders')).headers.get('date')!)

for (const [name, storeOf] of STORES) {
  test(`a clock that is set back by an hour holds up nothing that is new, and loses nothing that waits (${name})`, async (t) => {
    const clock = await setClock(t)
    const store = clock === null ? null : await storeOf(t)
    if (clock === null || store === null) return
    const env = { ...clock.env, EVENT_BUS_DRIVER: 'database' }
    const first = await store.start(env)
    const hasAll = (heddle: Heddle, ids: readonly string[]) =>
      until(
        async () => {
          const handled = new Set((await handledBy(heddle)).map(({ order_id }) => order_id))
          return ids.every((id) => handled.has(id) && handled.has(`${id} after`))
        },
        `${ids} handled`,
        WAIT_MS,
      )
    const publishAll = async (heddle: Heddle, round: string): Promise<string[]> => {
      const taken = (id: string, options: object = {}) =>
        post(heddle, '/events', { event: 'order.taken', payload: { id }, options })
      await taken(`${round} bare`)
      await taken(`${round} keyed`, { key: 'k' })
      await taken(`${round} soon`, { delayMs: 300 })
      await taken(`${round} soon keyed`, { delayMs: 300, key: 'k', ttlMs: 60_000 })
      await post(heddle, '/orders', { id: `${round} row` })
      return ['bare', 'keyed', 'soon', 'soon keyed', 'row'].map((each) => `${round} ${each}`)
    }
    await hasAll(first, await publishAll(first, 'before'))
    const waiting = { event: 'order.taken', payload: { id: 'waits' }, options: { delayMs: 20_000 } }
    await post(first, '/events', waiting)

    await clock.set('-1h')
    await until(async () => (await isBehind(first)) > HOUR_MS / 2, 'the new time')
    await hasAll(first, await publishAll(first, 'back'))
    // What another process has left is delivered by one that knows the new time alone.
    const held = await publishAll(first, 'left')
    await kill(first)
    const second = await store.start(env)
    await hasAll(second, [...held, ...(await publishAll(second, 'again'))])
    const late = (await handledBy(second)).some(({ order_id }) => order_id === 'waits')
    assert.equal(late, false, 'it waits for its time by the clock')
    assert.equal((await second.json('/readiness')).body.ready, true)

    await clock.set('+1m')
    await until(async () => (await isBehind(second)) < HOUR_MS / 2, 'the right time')
    await hasAll(second, ['waits', ...(await publishAll(second, 'right'))])
    await isEmpty(store)
    assert.equal(await second.stop(), 0)
    assert.deepEqual(
      second.logs.filter(({ level }) => level >= 50),
      [],
    )
  })
}
