import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SseClient } from '../../support/sse-client.ts'
import { post, startSystem } from '../../support/system-domain.ts'

/** About 4 KiB per record: the sum is far more than the kernel's socket buffers hold. */
const KEYS_PER_EVENT = 100

test('a client that reads gets a snapshot of any size', { timeout: 30_000 }, async (t) => {
  const heddle = await startSystem(t, { lanes: 1 })
  await post(heddle, '/probe/flood', { event: 'probe.fat', count: 500, keys: 5 * KEYS_PER_EVENT })
  const client = await SseClient.open(t, heddle, '/system/traces/stream')
  await client.until(() => client.frames.length === 1 || client.isEnded, 'the snapshot')
  assert.equal(client.isEnded, false)
  const { records } = client.frames[0]
  assert.equal(records.length, 500)
  // More than the kernel's socket buffers and the limit together, so that data had to wait in the process.
  assert.ok(JSON.stringify(records).length > 8 << 20)
})
