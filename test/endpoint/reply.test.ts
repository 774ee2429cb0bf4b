import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeddleError } from '../../src/core/errors/catalogue.ts'
import { replyOfThrown } from '../../src/runtime/endpoint/reply.ts'

test('an error whose details are no JSON is answered without them', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  for (const details of [1n, cycle]) {
    const { reply } = replyOfThrown(new HeddleError('HTTP_BAD_REQUEST', 'no', { details }))
    assert.equal(reply.status, 400)
    assert.deepEqual(JSON.parse(reply.body as string), { success: false, error: 'no' })
  }
})
