import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { post, seen } from './driving.ts'

/** What an event may carry. */
export async function payloadsArriveWhole(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('a payload that is no JSON object is refused with its code', async () => {
    for (const kind of ['array', 'null', 'undefined', 'text', 'map', 'bigint', 'cyclic']) {
      assert.deepEqual(await post(heddle, `/publish-fault/${kind}`), { code: 'EVENT_PAYLOAD_INVALID' }, kind)
    }
    assert.deepEqual(await post(heddle, '/publish-fault/large'), { code: 'EVENT_PAYLOAD_TOO_LARGE' })
  })

  await t.test('payloads up to 1 MiB arrive whole', async () => {
    const sizes = [0, 64, 20_000, 65_472, 65_536, 70_016, 400_000, (1 << 20) - 128]
    const ids = new Map<string, number>()
    for (const bytes of sizes) ids.set((await post(heddle, '/publish-large', { bytes })).id, bytes)
    const lines = await until(() => {
      const found = seen(heddle, 'large')
      return found.length >= sizes.length ? found : undefined
    }, 'all sizes')
    for (const { event, length, isWhole } of lines) {
      assert.equal(length, Math.floor(ids.get(event.id)! / 64) * 64)
      assert.equal(isWhole, true)
    }
  })
}
