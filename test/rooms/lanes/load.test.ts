import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lanes', import.meta.url))]
const MAX_IN_FLIGHT = 8
const LANES = 2

test('lanes under load', async (t) => {
  const heddle = await startHeddle(t, {
    domains: DOMAINS,
    lanes: LANES,
    env: { LANE_MAX_INFLIGHT: String(MAX_IN_FLIGHT) },
  })
  const together = <T>(count: number, run: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => run(n)))

  await t.test('requests go to the lane with the fewest in flight', async () => {
    const answers = await together(LANES * MAX_IN_FLIGHT, () => heddle.json('/slow?ms=150'))
    const perThread = new Map<number, number>()
    for (const { body } of answers) perThread.set(body.thread, (perThread.get(body.thread) ?? 0) + 1)
    assert.deepEqual([...perThread.values()], [MAX_IN_FLIGHT, MAX_IN_FLIGHT])
  })

  await t.test('what is more than the lanes may hold is refused, and what was accepted is finished', async () => {
    const answers = await together(LANES * MAX_IN_FLIGHT + 14, () => heddle.json('/slow?ms=1500'))
    const accepted = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 503)
    assert.deepEqual([accepted.length, refused.length], [LANES * MAX_IN_FLIGHT, 14])
    for (const { headers, body } of refused) {
      assert.ok(Number(headers.get('retry-after')) > 0)
      assert.equal(body.success, false)
    }
    assert.equal((await heddle.json('/thread')).status, 200, 'there is room again')
  })

  await t.test('bodies of all sizes cross both ways, whole', async () => {
    const sizes = [1, 63, 64, 4096, 65_000, 65_535, 65_536, 65_537, 70_000, 300_000, 1_000_000, (1 << 20) - 1]
    for (let round = 0; round < 3; round++) {
      await together(sizes.length, async (n) => {
        const bytes = randomBytes(sizes[(n + round) % sizes.length]!)
        const response = await heddle.fetch('/echo', {
          method: 'POST',
          headers: { 'content-type': 'application/octet-stream' },
          body: bytes,
        })
        assert.equal(response.status, 200)
        assert.ok(Buffer.from(await response.arrayBuffer()).equals(bytes), `${bytes.length} bytes`)
      })
    }
  })

  await t.test('text of all kinds of characters crosses both ways, whole', async () => {
    await together(10, async (n) => {
      const text = 'aä€😀\u0000"\\'.repeat(10 ** (n % 5))
      const { status, body } = await heddle.post('/json-echo', { text })
      assert.equal(status, 200)
      assert.equal(body.text, text)
    })
  })

  await t.test('requests behind a spinning handler are answered by the other lane', async () => {
    const spinning = heddle.json('/spin?ms=900')
    await until(() => heddle.logs.some(({ msg }) => msg === 'spins'), 'the spinner')
    let done = 0
    const startedMs = Date.now()
    for (let round = 0; round < 8; round++) {
      const answers = await together(6, () => heddle.json('/thread'))
      for (const { status } of answers) assert.equal(status, 200)
      done += answers.length
    }
    const tookMs = Date.now() - startedMs
    assert.equal(done, 48)
    assert.ok(tookMs < 700, `${tookMs} ms: as long as the spinner`)
    assert.equal((await spinning).status, 200)
  })

  await t.test('what the other lane has no room for waits for the spinner, and is not refused', async () => {
    const spinning = heddle.json('/spin?ms=500')
    await until(() => heddle.logs.filter(({ msg }) => msg === 'spins').length === 2, 'the spinner')
    const answers = await together(LANES * MAX_IN_FLIGHT - 1, () => heddle.json('/slow?ms=400'))
    for (const { status } of answers) assert.equal(status, 200)
    assert.equal((await spinning).status, 200)
  })

  await t.test("a client that leaves aborts its handler's signal", async () => {
    const leaving = new AbortController()
    const request = heddle.fetch('/until-aborted', { signal: leaving.signal })
    await until(() => heddle.logs.some(({ msg }) => msg === 'waits'), 'the handler')
    leaving.abort()
    await assert.rejects(request)
    await until(() => heddle.logs.some(({ msg }) => msg === 'aborted'), 'the signal', 3000)
  })

  await t.test("a lane's stream reaches its client, and learns that it has left", async () => {
    const leaving = new AbortController()
    const response = await heddle.fetch('/ticks', { signal: leaving.signal })
    assert.match(response.headers.get('content-type')!, /^text\/event-stream/)
    let text = ''
    const reader = response.body!.getReader()
    while (!text.includes('"n":5')) text += Buffer.from((await reader.read()).value!).toString()
    const numbers = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!).n)
    assert.deepEqual(numbers.slice(0, 6), [0, 1, 2, 3, 4, 5])
    leaving.abort()
    await until(() => heddle.logs.some(({ msg }) => msg === 'stream gone'), 'the signal', 3000)
  })

  await t.test('an open stream in a lane does not hold up the end of the process', async () => {
    const response = await heddle.fetch('/ticks')
    const reader = response.body!.getReader()
    await reader.read()
    const startedMs = Date.now()
    const stopping = heddle.stop()
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    }, 'its client sees that it would have gone on')
    assert.equal(await stopping, 0)
    assert.ok(Date.now() - startedMs < 3000, `it took ${Date.now() - startedMs} ms`)
  })
})
