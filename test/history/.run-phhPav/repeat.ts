import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boot } from '#heddle/testing'

test('GET /orders/broken does not fail', async (t) => {
  const app = await boot(t)
  const answer = await app.request('GET', '/orders/broken')
  // shop.PlaceOrder.broken: no such column: missing
  assert.ok(answer.status < 500, JSON.stringify(answer.body))
  await app.idle()
  assert.deepEqual((await app.deadLetters()).map(({ subscriber, error }) => [subscriber, error]), [])
})
