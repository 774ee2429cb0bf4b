import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { test } from 'node:test'
import { type Heddle, until } from '../support/heddle.ts'
import { post, startSystem } from './fixture.ts'
import { SseClient } from './sse-client.ts'

const EVENTS = 6000
/** Some 4 KiB per record: in sum far more than the kernel's socket buffers take. */
const KEYS_PER_EVENT = 100
/** Far above what the heaps of the process gain by the flood itself, far below what it would keep for three clients that do not read. */
const RSS_GROWTH_MAX_BYTES = 150 << 20

test('a client that does not read is cut off, and one that reads gets everything', { timeout: 60_000 }, async (t) => {
  const heddle = await startSystem(t)
  const paths = ['/system/events/stream', '/system/traces/stream']
  const readers = await Promise.all(paths.map((path) => SseClient.open(t, heddle, path)))
  const idlers = await Promise.all(paths.map((path) => openIdle(heddle, path)))
  t.after(() => idlers.forEach((idler) => void idler.socket.destroy()))
  // Clients that come behind the idle ones in the list of listeners: their records must not be skipped when those are cut off.
  const late = await Promise.all(paths.map((path) => SseClient.open(t, heddle, path)))
  const rssBefore = await residentBytes(heddle)

  await post(heddle, '/probe/flood', { event: 'probe.fat', count: EVENTS, keys: KEYS_PER_EVENT, batch: 10, pauseMs: 2 })
  let sentBytes = 0
  for (const reader of [...readers, ...late]) {
    const fat = () => reader.frames.filter(({ event }) => event === 'probe.fat')
    await reader.until(() => fat().length === EVENTS, 'every record of the flood', 30_000)
    assert.deepEqual(
      fat().map(({ payload_keys }) => payload_keys[0]),
      Array.from({ length: EVENTS }, (_, n) => `n_${n}`),
    )
    assert.equal(reader.isEnded, false)
    sentBytes = JSON.stringify(reader.frames).length
  }
  const growth = (await residentBytes(heddle)) - rssBefore
  assert.ok(growth < RSS_GROWTH_MAX_BYTES, `resident size grew by ${growth} bytes`)

  for (const { socket, received } of idlers) {
    socket.resume()
    await until(() => received.isClosed, 'the server has closed the connection')
    assert.ok(received.bytes > 0)
    assert.ok(received.bytes < sentBytes / 2, `it got ${received.bytes} of ${sentBytes} bytes after all`)
  }
  assert.equal((await heddle.json('/system/health/live')).status, 200)
})

/** A connection that asks for a stream, reads its beginning, and then nothing more. */
async function openIdle(heddle: Heddle, path: string) {
  const socket = connect(heddle.port, '127.0.0.1')
  const received = { bytes: 0, isClosed: false }
  socket.on('close', () => {
    received.isClosed = true
  })
  // A reset is one way for the server to close.
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

async function residentBytes(heddle: Heddle): Promise<number> {
  const status = await readFile(`/proc/${heddle.process.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) * 1024
}
