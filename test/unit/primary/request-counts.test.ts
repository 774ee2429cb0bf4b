import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObservedRequest, ObservedRoute } from '../../../src/contracts/tracing.ts'
import { COUNTED_ROUTES_MAX, DURATIONS_SEC, RequestCounts } from '../../../src/primary/health/request-counts.ts'

const route = (number: number, path: string, more: Partial<ObservedRoute> = {}): ObservedRoute => ({
  number,
  method: 'GET',
  path,
  plugin: 'shop.Sell',
  kind: 'endpoint',
  zone: 'application',
  ...more,
})

const request = (of: ObservedRoute | null): ObservedRequest => ({
  ...{ requestId: 'r', key: 'r', method: 'GET', path: '/', startMs: 1000, servedBy: 0, isTold: false },
  route: of,
})

/** The samples of one metric as `label=value …`, each with its value. */
function samplesOf(counts: RequestCounts, name: string): Record<string, number> {
  const { samples } = counts.metrics().find((each) => each.name === name)!
  const textOf = (labels: object): string =>
    Object.values(labels)
      .filter((value) => value !== '')
      .join(' ')
  const named = samples.map(({ labels, value, suffix = '' }) => [textOf(labels) + suffix, value] as const)
  return Object.fromEntries(named.filter(([key, value]) => value > 0 || key.endsWith('_bucket')))
}

test('requests are counted by route and class of status, and a client that left has a class of its own', () => {
  const counts = new RequestCounts()
  const [list, one] = [route(3, '/orders'), route(4, '/orders/:id')]
  for (const status of [200, 201, 404, 503, 0]) counts.ended(request(list), status, 1001)
  counts.ended(request(one), 304, 1001)
  counts.ended(request(null), 404, 1001)
  assert.deepEqual(samplesOf(counts, 'heddle_http_requests_total'), {
    'GET /orders shop.Sell gone': 1,
    'GET /orders shop.Sell 2xx': 2,
    'GET /orders shop.Sell 4xx': 1,
    'GET /orders shop.Sell 5xx': 1,
    'GET /orders/:id shop.Sell 3xx': 1,
    'unknown 4xx': 1,
  })
})

test('the histogram is cumulative, a duration at a bound is within it, and its count and sum are those of the requests', () => {
  const counts = new RequestCounts()
  for (const ms of [0.5, 1, 30, 60_000]) counts.ended(request(route(0, '/a')), 200, 1000 + ms)
  const samples = samplesOf(counts, 'heddle_http_request_duration_seconds')
  const bucketOf = (le: string): number => samples[`GET /a shop.Sell ${le}_bucket`]!
  assert.deepEqual([bucketOf('0.001'), bucketOf('0.025'), bucketOf('0.05'), bucketOf('10')], [2, 2, 3, 3])
  assert.equal(bucketOf('+Inf'), 4)
  assert.equal(samples['GET /a shop.Sell_count'], 4)
  assert.equal(samples['GET /a shop.Sell_sum'], 60.0315)
  assert.equal(Object.keys(samples).length, DURATIONS_SEC.length + 3)
})

test('streams and sockets are counted and not timed, and the pages of the runtime are left out', () => {
  const counts = new RequestCounts()
  counts.ended(request(route(0, '/live', { kind: 'stream' })), 200, 9000)
  counts.ended(request(route(1, '/system/status', { zone: 'system' })), 200, 9000)
  assert.deepEqual(samplesOf(counts, 'heddle_http_requests_total'), { 'GET /live shop.Sell 2xx': 1 })
  assert.deepEqual(samplesOf(counts, 'heddle_http_request_duration_seconds'), {})
})

test('a route that nobody has asked for has answers and failures of 0, and no histogram', () => {
  const counts = new RequestCounts()
  const [requests, durations] = counts.metrics([route(0, '/a'), route(1, '/system/status', { zone: 'system' })])
  assert.deepEqual(durations!.samples, [])
  assert.deepEqual(
    requests!.samples.map(({ labels, value }) => [labels.status, value]),
    [
      ['2xx', 0],
      ['4xx', 0],
      ['5xx', 0],
    ],
  )
})

test('a route that comes back with another number goes on counting', () => {
  const counts = new RequestCounts()
  counts.ended(request(route(0, '/a')), 200, 1001)
  counts.ended(request(route(9, '/a')), 200, 1001)
  assert.deepEqual(samplesOf(counts, 'heddle_http_requests_total'), { 'GET /a shop.Sell 2xx': 2 })
})

test('beyond COUNTED_ROUTES_MAX further routes share one line', () => {
  const counts = new RequestCounts()
  for (let n = 0; n < COUNTED_ROUTES_MAX + 20; n++) counts.ended(request(route(n, `/r${n}`)), 200, 1001)
  const samples = samplesOf(counts, 'heddle_http_requests_total')
  assert.equal(Object.keys(samples).length, COUNTED_ROUTES_MAX + 1)
  assert.equal(samples['other 2xx'], 20)
})
