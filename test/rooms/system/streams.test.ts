import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { SseClient } from '../../support/sse-client.ts'
import { startSystem } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

const publish = (heddle: Heddle, event: string) => heddle.post('/probe/publish', { event, payload: { a: 1 } })

test('the streams', async (t) => {
  const heddle = await startSystem(t)

  await t.test('traces/stream begins with a snapshot and goes on with each new record', async (t) => {
    await publish(heddle, 'probe.before')
    await until(async () => (await heddle.json('/system/traces/flat')).body.length > 0, 'the event is traced')
    const { body: flat } = await heddle.json('/system/traces/flat')
    const client = await SseClient.open(t, heddle, '/system/traces/stream')
    assert.equal(client.response.headers.get('content-type'), 'text/event-stream')
    await publish(heddle, 'probe.after')
    await client.until(() => client.frames.length >= 2, 'snapshot and one record')
    assert.deepEqual(client.frames[0], { snapshot: true, records: flat })
    const { body: now } = await heddle.json('/system/traces/flat')
    assert.deepEqual(client.frames[1], now.at(-1))
    assert.equal(client.frames[1].event, 'probe.after')
  })

  await t.test('no record is lost or doubled between snapshot and live frames', async (t) => {
    const count = 3000
    const flood = heddle.post('/probe/flood', { event: 'probe.dense', count, batch: 10 })
    const clients: SseClient[] = []
    for (let n = 0; n < 10; n++) clients.push(await SseClient.open(t, heddle, '/system/traces/stream'))
    await flood
    const last = `n_${count - 1}`
    for (const client of clients) {
      const isLast = (record: { payload_keys: string[] }): boolean => record.payload_keys[0] === last
      const all = () => client.frames.flatMap((frame) => (frame.snapshot ? frame.records : [frame]))
      await client.until(() => all().some(isLast), 'the last event of the flood')
      const seen: string[] = all()
        .filter(({ event }) => event === 'probe.dense')
        .map(({ payload_keys }) => payload_keys[0])
      const first = Number(seen[0]!.slice(2))
      assert.deepEqual(
        seen,
        Array.from({ length: count - first }, (_, n) => `n_${first + n}`),
      )
      assert.equal(client.frames.filter(({ snapshot }) => snapshot).length, 1)
    }
    assert.ok(
      clients.some((client) => client.frames.length > 1),
      'no client came before the end: the test has shown nothing',
    )
  })

  await t.test('events/stream sends records without a snapshot, and none whose name begins with _', async (t) => {
    const client = await SseClient.open(t, heddle, '/system/events/stream')
    await client.until(() => client.comments.length === 1, 'the comment that opens the stream')
    await publish(heddle, '_private.one')
    await publish(heddle, 'probe.public')
    await client.until(() => client.frames.length >= 1, 'one frame')
    const { body: flat } = await heddle.json('/system/traces/flat')
    assert.ok(flat.some(({ event }: { event: string }) => event === '_private.one'))
    assert.deepEqual(client.frames, [flat.at(-1)])
    assert.equal(client.frames[0].event, 'probe.public')
  })

  await t.test(
    'logs/stream sends level, message, timestamp and identity of every call, and nothing else',
    async (t) => {
      const client = await SseClient.open(t, heddle, '/system/logs/stream')
      for (const level of ['debug', 'info', 'warning', 'error']) {
        await heddle.post('/probe/log', { level, message: `a ${level}` })
      }
      await client.until(() => client.frames.length >= 3, 'three records')
      const { timestamp } = client.frames[0]
      assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.deepEqual(client.frames[0], { level: 'INFO', message: 'a info', timestamp, identity: 'probe.WriteLogs' })
      // LOG_LEVEL is info.
      assert.deepEqual(
        client.frames.map(({ level, message }) => [level, message]),
        [
          ['INFO', 'a info'],
          ['WARNING', 'a warning'],
          ['ERROR', 'a error'],
        ],
      )
    },
  )

  await t.test('a HEAD request for a stream is answered without opening one', async () => {
    const response = await heddle.fetch('/probe/stream', { method: 'HEAD' })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'text/event-stream')
    assert.deepEqual((await heddle.json('/probe/streams')).body, { opened: 0, open: 0 })
  })

  await t.test('a client that leaves is forgotten', async (t) => {
    const clients: SseClient[] = []
    for (let n = 0; n < 3; n++) clients.push(await SseClient.open(t, heddle, '/probe/stream'))
    assert.deepEqual((await heddle.json('/probe/streams')).body, { opened: 3, open: 3 })
    for (const client of clients) client.close()
    await until(async () => (await heddle.json('/probe/streams')).body.open === 0, 'nobody is left')
  })

  await t.test('a drain breaks the streams off: none looks like a whole one', async (t) => {
    const client = await SseClient.open(t, heddle, '/system/logs/stream')
    const whole = await heddle.fetch('/system/traces/stream')
    const exit = heddle.stop()
    await client.until(() => client.isEnded, 'the end')
    await assert.rejects(whole.text())
    assert.equal(await exit, 0)
  })
})

/** About 4 KiB per record: the sum is far more than the kernel's socket buffers hold. */
const KEYS_PER_EVENT = 100

test('a client that reads gets a snapshot of any size', { timeout: 180_000 }, async (t) => {
  const heddle = await startSystem(t, { lanes: 1 })
  await heddle.post('/probe/flood', { event: 'probe.fat', count: 500, keys: 5 * KEYS_PER_EVENT })
  const client = await SseClient.open(t, heddle, '/system/traces/stream')
  await client.until(() => client.frames.length === 1 || client.isEnded, 'the snapshot')
  assert.equal(client.isEnded, false)
  const { records } = client.frames[0]
  assert.equal(records.length, 500)
  // More than the kernel's socket buffers and the limit together, so that data had to wait in the process.
  assert.ok(JSON.stringify(records).length > 8 << 20)
})
