import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { RequestContext } from '../../../src/runtime/endpoint/context.ts'
import { replyOfThrown } from '../../../src/runtime/endpoint/reply.ts'

/** Only an HttpError reads it. */
const UNREAD = {} as RequestContext

test('an error whose details are no JSON is answered without them', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  for (const details of [1n, cycle]) {
    const { reply } = replyOfThrown(new HeddleError('HTTP_BAD_REQUEST', 'no', { details }), UNREAD)
    assert.equal(reply.status, 400)
    assert.deepEqual(JSON.parse(reply.body as string), { success: false, error: 'no' })
  }
})
