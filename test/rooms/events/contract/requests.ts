import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { post } from './driving.ts'

/** Events whose publisher waits for a reply. */
export async function requestsAreAnswered(t: TestContext, heddle: Heddle): Promise<void> {
  for (const from of ['/request', '/primary/request']) {
    await t.test(`a request gets the first object that a subscriber returns (${from})`, async () => {
      const { reply } = await post(heddle, from, { event: 'ask.object', payload: { a: [1, { b: 'ü' }] } })
      assert.deepEqual(reply.got, { a: [1, { b: 'ü' }] })
      assert.deepEqual((await post(heddle, from, { event: 'ask.second' })).reply, { from: 'third' })
      assert.deepEqual((await post(heddle, from, { event: 'ask.primary' })).reply, { from: 'primary' })
      assert.equal((await post(heddle, from, { event: 'ask.large' })).reply.text.length, 500_000)
    })

    await t.test(
      `a request that nobody can answer is refused at once, one that nobody does after its time (${from})`,
      async () => {
        assert.equal((await post(heddle, from, { event: 'ask.nobody' })).code, 'EVENT_BUS_NO_SUBSCRIBER')
        assert.equal(
          (await post(heddle, from, { event: 'ask.never', timeoutMs: 80 })).code,
          'EVENT_BUS_REQUEST_TIMEOUT',
        )
        assert.equal(
          (await post(heddle, from, { event: 'left' })).code,
          'EVENT_BUS_NO_SUBSCRIBER',
          'it unsubscribed in onBoot',
        )
      },
    )
  }

  await t.test('a request whose subscribers have all failed gets the error of the last', async () => {
    const { message, tookMs, isHeddleError } = await post(heddle, '/request', { event: 'ask.throws' })
    assert.equal(message, 'not today')
    assert.ok(tookMs < 1500, `only after ${tookMs} ms`)
    assert.equal(isHeddleError, true)
  })

  await t.test('a reply that is no JSON ends the request, not the lane', async () => {
    for (const kind of ['bigint', 'toJSON']) {
      const { code } = await post(heddle, '/request', { event: 'ask.odd', payload: { kind }, timeoutMs: 300 })
      assert.equal(typeof code, 'string')
    }
    assert.deepEqual(
      heddle.logs.filter(({ identity, level }) => identity === 'supervisor' && level >= 50),
      [],
    )
  })
}
