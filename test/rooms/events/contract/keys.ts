import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { post, type Seen, seenOften } from './driving.ts'

/** Events with an ordering key. */
export async function keysKeepOrder(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('events of one key are handled one after another, in their order, over all lanes', async () => {
    const count = 400
    const keys = 5
    await post(heddle, '/publish-many', { event: 'keyed', count, keys, payload: { tag: 'k' } })
    await seenOften(heddle, 'keyed-ends', 'k', count)
    const lines = heddle.logs.filter(({ msg, tag }) => msg.startsWith('keyed-') && tag === 'k') as Seen[]
    lines.sort((a, b) => a.atMs - b.atMs)
    assert.equal(lines.length, 2 * count)
    for (let key = 0; key < keys; key++) {
      const ofKey = lines.filter(({ n }) => n % keys === key).map(({ msg, n }) => `${msg} ${n}`)
      const expected = Array.from({ length: count / keys }, (_, n) => n * keys + key)
      assert.deepEqual(
        ofKey,
        expected.flatMap((n) => [`keyed-begins ${n}`, `keyed-ends ${n}`]),
      )
    }
    assert.ok(new Set(lines.map(({ thread }) => thread)).size > 1, 'more lanes than one had a share')
  })
}
