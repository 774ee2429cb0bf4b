import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replyOfThrown } from '../../src/endpoint/reply.ts'
import { HeddleError } from '../../src/errors/catalogue.ts'

test('an error whose details are no JSON is answered without them', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  for (const details of [1n, cycle]) {
    const { reply } = replyOfThrown(new HeddleError('HTTP_BAD_REQUEST', 'no', { details }))
    assert.equal(reply.status, 400)
    assert.deepEqual(JSON.parse(reply.body as string), { success: false, error: 'no' })
  }
})
