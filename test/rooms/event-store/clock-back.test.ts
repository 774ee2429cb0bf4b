import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { setClock } from '../../support/servers/set-clock.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, kill, STORES } from './databases.ts'

const HOUR_MS = 3_600_000
const WAIT_MS = 30_000
const FAR_MS = 20 * 60_000

/** How far the clock of a process is behind this one's, milliseconds. */
const isBehind = async (heddle: Heddle): Promise<number> =>
  Date.now() - Date.parse((await heddle.fetch('/orders')).headers.get('date')!)

for (const [name, storeOf] of STORES) {
  test(`a clock that is set back by an hour and right again: delays last as long as before, dates are dates, nothing is lost (${name})`, async (t) => {
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
    await post(first, '/events', { event: 'order.retried', payload: { id: 'retried' } })

    await clock.set('-1h')
    await until(async () => (await isBehind(first)) > HOUR_MS / 2, 'the new time')
    // Its delay goes on: nobody waits until the clock has come up again.
    await hasAll(first, ['waits', 'retried', ...(await publishAll(first, 'back'))])
    // What another process has left is delivered by one that knows the new time alone.
    const held = await publishAll(first, 'left')
    await kill(first)
    const second = await store.start(env)
    await hasAll(second, [...held, ...(await publishAll(second, 'again'))])
    await post(second, '/events', { event: 'order.taken', payload: { id: 'far' }, options: { delayMs: FAR_MS } })
    const at = Date.now() - FAR_MS
    await post(second, '/events', { event: 'order.taken', payload: { id: 'dated' }, options: { at } })
    assert.equal((await second.json('/readiness')).body.ready, true)

    await clock.set('+1m')
    await until(async () => (await isBehind(second)) < HOUR_MS / 2, 'the right time')
    await hasAll(second, ['dated', ...(await publishAll(second, 'right'))])
    // Its delay lasts as long as before: nothing else waits.
    const left = () => store.rows<{ due_ms: number; event: string }>(`SELECT due_ms, event FROM heddle_delivery`)
    await until(async () => (await left()).length === 1, 'one event in the log')
    const [{ due_ms }] = (await left()) as unknown as [{ due_ms: number }]
    assert.ok(Number(due_ms) > Date.now() + FAR_MS / 2, `${due_ms} is not the rest of its delay`)
    assert.equal((await handledBy(second)).filter(({ order_id }) => order_id === 'far').length, 0)
    assert.equal(await second.stop(), 0)
    assert.deepEqual(
      second.logs.filter(({ level }) => level >= 50),
      [],
    )
  })
}
