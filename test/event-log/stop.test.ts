import assert from 'node:assert/strict'
import { test } from 'node:test'
import { post } from '../support/started-service.ts'
import { until } from '../support/until.ts'
import { handledBy, onSqlite } from './databases.ts'

for (const [driver, isKept] of [
  ['database', true],
  ['in_process', false],
] as const) {
  test(`a stop whose time is up leaves events to the next process, or says that they are lost (${driver})`, async (t) => {
    const store = await onSqlite(t)
    assert.ok(store)
    const first = await store.start({ EVENT_BUS_DRIVER: driver, HOLD: 'wait handled', SHUTDOWN_TIMEOUT_MS: '500' })
    await post(first, '/events', { event: 'order.handled', payload: { id: 'a' } })
    assert.equal(await first.stop(), 0)
    const lost = first.logs.filter(({ msg }) => msg.includes('lost with this process')).map(({ msg }) => msg)
    assert.deepEqual(lost, isKept ? [] : ['1 event deliveries were not finished and are lost with this process'])
    if (!isKept) return
    const second = await store.start({ EVENT_BUS_DRIVER: driver })
    await until(async () => (await handledBy(second))[0]?.order_id === 'a after', 'what was left handled')
  })
}
