import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { Heddle } from '../support/heddle.ts'
import { SseClient } from '../support/sse-client.ts'
import { startSystem } from '../support/system-domain.ts'
import { until } from '../support/until.ts'

const EVENTS = 600
/** About 20 KiB per record: the sum is far more than the kernel's socket buffers hold. */
const KEYS_PER_EVENT = 500

test('a client that does not read is cut off, and one that reads gets everything', { timeout: 240_000 }, async (t) => {
  const heddle = await startSystem(t)
  const paths = ['/system/events/stream', '/system/traces/stream']
  const readers = await Promise.all(paths.map((path) => SseClient.open(t, heddle, path)))
  const idlers = await Promise.all(paths.map((path) => openIdle(heddle, path)))
  t.after(() => idlers.forEach((idler) => void idler.socket.destroy()))
  // These clients stand behind the idle ones in the list of listeners: cutting off the idle ones must not skip their records.
  const late = await Promise.all(paths.map((path) => SseClient.open(t, heddle, path)))

  await heddle.post('/probe/flood', { event: 'probe.fat', count: EVENTS, keys: KEYS_PER_EVENT, batch: 2, pauseMs: 2 })
  let sentBytes = 0
  for (const reader of [...readers, ...late]) {
    // The flood's last record is the last frame.
    await reader.until(
      () => reader.frames.at(-1)?.payload_keys?.[0] === `n_${EVENTS - 1}`,
      'the last record of the flood',
      30_000,
    )
    assert.deepEqual(
      reader.frames.filter(({ event }) => event === 'probe.fat').map(({ payload_keys }) => payload_keys[0]),
      Array.from({ length: EVENTS }, (_, n) => `n_${n}`),
    )
    assert.equal(reader.isEnded, false)
    sentBytes = JSON.stringify(reader.frames).length
  }

  for (const { socket, received } of idlers) {
    socket.resume()
    await until(() => received.isClosed, 'the server has closed the connection')
    assert.ok(received.bytes > 0)
    // The content of the kernel's buffers, and at most 1 MiB that waited in the process.
    assert.ok(received.bytes < sentBytes / 2, `it got ${received.bytes} of ${sentBytes} bytes after all`)
  }
  assert.equal((await heddle.json('/system/health/live')).status, 200)
})

/** Opens a stream, reads its beginning, and then reads nothing more. */
async function openIdle(heddle: Heddle, path: string) {
  const socket = connect(heddle.port, '127.0.0.1')
  const received = { bytes: 0, isClosed: false }
  socket.on('close', () => {
    received.isClosed = true
  })
  // The server may also close by a reset.
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
  socket.on('data', (chunk) => {
    received.bytes += chunk.length
  })
  socket.pause()
  return { socket, received }
}
