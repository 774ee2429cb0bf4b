import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SseClient } from '../../support/sse-client.ts'
import { startSystem } from '../../support/system-domain.ts'

test('a silent stream gets a comment line every 15 seconds', { timeout: 40_000 }, async (t) => {
  const heddle = await startSystem(t, { lanes: 1 })
  const openedMs = Date.now()
  const paths = ['/system/traces/stream', '/system/events/stream', '/system/logs/stream']
  const clients = await Promise.all(paths.map((path) => SseClient.open(t, heddle, path)))
  for (const client of clients) {
    await client.until(() => client.comments.length >= 1, 'the comment that opens the stream')
    const atOpening = client.comments.length
    await client.until(() => client.comments.length > atOpening, 'a comment', 17_000)
    assert.equal(client.isEnded, false)
  }
  const waitedMs = Date.now() - openedMs
  assert.ok(waitedMs > 13_000 && waitedMs < 17_000, `it came after ${waitedMs} ms`)
})
