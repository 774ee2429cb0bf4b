import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixtureDomains('lanes')]
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

  assert.equal(await heddle.stop(), 0)
})
