import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { systemDomain } from '../../support/shipped-domains.ts'
import { SseClient } from '../../support/sse-client.ts'
import { fixture, post, startWith } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const JSON_PATHS = [
  '/system/traces/flat',
  '/system/traces/tree',
  '/system/events',
  '/system/status',
  '/system/lint',
  '/system/lanes',
  '/system/dead-letters',
  '/system/health/live',
  '/system/health/ready',
]
const STREAM_PATHS = ['/system/traces/stream', '/system/events/stream', '/system/logs/stream']

test('the built-in endpoints', async (t) => {
  const heddle = await startWith(t, 'observed')

  await t.test('answer GET without credentials, with bad ones, and with a query that means nothing', async () => {
    for (const path of JSON_PATHS) {
      for (const [query, headers] of [
        ['', {}],
        ['?limit=1&event=x', { authorization: 'Bearer forged' }],
      ] as const) {
        const response = await heddle.fetch(path + query, { headers })
        assert.equal(response.status, 200, path)
        assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8', path)
        JSON.parse(await response.text())
      }
    }
  })

  await t.test('answer no other method, streams included', async () => {
    for (const path of [...JSON_PATHS, ...STREAM_PATHS]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const { status, headers, body } = await heddle.json(path, { method })
        assert.deepEqual([status, body], [405, { success: false, error: 'Method not allowed' }], `${method} ${path}`)
        assert.equal(headers.get('allow'), 'GET, HEAD')
      }
    }
  })

  await t.test('show payload keys, and payload values nowhere: no endpoint, no stream, no log line', async (t) => {
    const clients = await Promise.all(STREAM_PATHS.map((path) => SseClient.open(t, heddle, path)))
    const payload = { password: 'value-one', deep: { inner_key: 'value-two' }, list: ['value-three'] }
    for (const event of ['probe.fails', 'probe.plain']) await post(heddle, '/lane/publish', { event, payload })
    await clients[2]!.frame(({ level }) => level === 'ERROR', 'the failure in the log')
    for (const client of clients.slice(0, 2)) {
      const seen = await client.frame(({ event }) => event === 'probe.plain', 'the event')
      assert.deepEqual(seen.payload_keys, ['password', 'deep', 'list'])
    }
    await until(async () => (await heddle.json('/system/dead-letters')).body.length > 0, 'the dead letter')
    const shown = await Promise.all(
      [...JSON_PATHS, '/system/metrics', '/system/metrics/prometheus'].map(async (path) =>
        (await heddle.fetch(path)).text(),
      ),
    )
    const everything = [...shown, JSON.stringify([clients.map(({ frames }) => frames), heddle.logs])].join('\n')
    assert.ok(everything.includes('probe.plain'))
    for (const secret of ['value-one', 'value-two', 'value-three', 'inner_key']) {
      assert.ok(!everything.includes(secret), secret)
    }
  })

  await t.test('a lane is shown with its load, its loop and its heap', async () => {
    const lane = await until(async () => {
      const [first] = (await heddle.json('/system/lanes')).body
      // Null until it has told how it is, and how its loop was in a whole window.
      return first.external_bytes !== null && first.loop_delay_ms !== null && first
    }, 'figures of the lane')
    const { loop_delay_ms, heap_bytes, external_bytes, cpu_ms, started_at, starved_core_share: share, ...rest } = lane
    assert.ok(share === null || (share >= 0 && share <= 1), `${share}`)
    for (const figure of [loop_delay_ms, heap_bytes, external_bytes, cpu_ms]) assert.equal(typeof figure, 'number')
    assert.ok(Math.abs(Date.now() - Date.parse(started_at)) < 60_000)
    assert.deepEqual(rest, {
      index: 0,
      state: 'ready',
      responsive: true,
      requests_in_flight: 0,
      deliveries_in_flight: 0,
      sockets_open: 0,
      restarts: 0,
      role: 'regular',
      deaths: [],
      child_processes: [],
      threads: [],
    })
  })
})

test('a built-in plugin can be replaced by one of one’s own, with credentials', async (t) => {
  const heddle = await startHeddle(t, { domains: [systemDomain(['show-status']), fixture('replacing')], lanes: 1 })
  assert.equal((await heddle.fetch('/system/status')).status, 401)
  const { status, body } = await heddle.json('/system/status', { headers: { authorization: 'Bearer good' } })
  assert.deepEqual([status, body.ours, body.plugins['ours.ShowStatus'].status], [200, true, 'OK'])
  assert.deepEqual(
    Object.values(body.plugins as Record<string, { status: string }>).filter((each) => each.status !== 'OK'),
    [],
  )
  assert.equal((await heddle.fetch('/system/events')).status, 200)
})
