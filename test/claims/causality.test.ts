import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../../src/contracts/event-bus.ts'
import { startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../fixtures/causality', import.meta.url))]

test('who caused what, across awaits, timers, tools and lanes', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 3 })
  const start = async (event: string, payload: object, more: object = {}) => {
    const { status, body, headers } = await heddle.post('/start', { event, payload, ...more })
    assert.equal(status, 200)
    assert.equal(headers.get('x-request-id'), body.requestId)
    return body as { id: string; requestId: string }
  }
  const history = async (): Promise<EventRecord[]> => (await heddle.json('/history')).body.records
  const ofRequest = (requestId: string, event: string, count: number): Promise<EventRecord[]> =>
    until(
      async () => {
        const found = (await history()).filter((record) => record.request_id === requestId && record.event === event)
        return found.length >= count ? found : undefined
      },
      `${count} of ${event}`,
      5000,
    )

  await t.test('an event of an HTTP handler is a root, and carries its request', async () => {
    const { id, requestId } = await start('alone', {})
    const record = (await history()).find((each) => each.id === id)!
    assert.deepEqual([record.parent_id, record.request_id], [null, requestId])
  })

  const ways: [way: string, leaves: number][] = [
    ['at-once', 1],
    ['awaits', 1],
    ['set-timeout', 1],
    ['set-immediate', 1],
    ['next-tick', 1],
    ['microtask', 1],
    ['promise-all', 3],
    ['retry', 1],
    ['transaction', 2],
    ['state', 1],
    ['auth', 1],
  ]
  for (const [way, leaves] of ways) {
    await t.test(`what a subscriber publishes is caused by its event: ${way}`, async () => {
      const { id, requestId } = await start('way', { run: way, way })
      for (const leaf of await ofRequest(requestId, 'leaf', leaves)) assert.equal(leaf.parent_id, id)
    })
  }

  await t.test('what answers a request is caused by the request, and what follows it by the asker', async () => {
    const { id, requestId } = await start('way', { run: 'rpc', way: 'rpc' })
    const leaves = await ofRequest(requestId, 'leaf', 2)
    const [ask] = await ofRequest(requestId, 'ask', 1)
    assert.equal(ask!.parent_id, id)
    assert.deepEqual(
      leaves.map(({ parent_id }) => parent_id),
      [ask!.id, id],
    )
  })

  await t.test('a chain keeps its thread of causes through three lanes', async () => {
    const { id, requestId } = await start('hop', { run: 'hop', visited: [], known: [] })
    const [arrived] = await ofRequest(requestId, 'arrived', 1)
    const hops = await ofRequest(requestId, 'hop', 3)
    assert.deepEqual(
      hops.map(({ parent_id }) => parent_id),
      [null, id, hops[1]!.id],
    )
    assert.equal(arrived!.parent_id, hops[2]!.id)
    const visits = await until(() => {
      const lines = heddle.logs.filter(({ msg, run }) => msg === 'visited' && run === 'hop')
      return lines.length === 3 ? lines : undefined
    }, 'three visits')
    assert.equal(new Set(visits.map(({ thread }) => thread)).size, 3, 'each step in another lane')
  })

  await t.test('all of a fan-out have one cause', async () => {
    const { id, requestId } = await start('fan', { run: 'fan', width: 60 })
    const leaves = await ofRequest(requestId, 'leaf', 60)
    assert.equal(leaves.length, 60)
    assert.deepEqual(new Set(leaves.map(({ parent_id }) => parent_id)), new Set([id]))
  })

  await t.test('requests at once never mix', async () => {
    const kinds = ['awaits', 'transaction', 'state', 'set-timeout', 'promise-all', 'auth', 'rpc', 'retry']
    const started = await Promise.all(
      kinds.flatMap((way) =>
        [0, 1, 2].map(async (n) => ({
          way,
          ...(await start('way', { run: `${way}-${n}`, way }, { waitMs: 5 })),
        })),
      ),
    )
    for (const { way, id, requestId } of started) {
      const count = way === 'promise-all' ? 3 : way === 'transaction' || way === 'rpc' ? 2 : 1
      const leaves = await ofRequest(requestId, 'leaf', count)
      const asks = (await history()).filter((each) => each.request_id === requestId && each.event === 'ask')
      const causes = new Set([id, ...asks.map((ask) => ask.id)])
      assert.equal(leaves.length, count, way)
      for (const leaf of leaves) assert.ok(causes.has(leaf.parent_id!), `${way}: a stranger is its cause`)
    }
  })

  await t.test('an event of a job has neither cause nor request', async () => {
    const ticks = await until(async () => {
      const found = (await history()).filter(({ event }) => event === 'tick')
      return found.length > 0 ? found : undefined
    }, 'a tick')
    for (const { parent_id, request_id } of ticks) assert.deepEqual([parent_id, request_id], [null, null])
  })

  assert.equal(await heddle.stop(), 0)
})
