import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestSummary } from '#heddle'
import type { ObservedRequest } from '../../../src/contracts/tracing.ts'
import { anchorHere, exactMs } from '../../../src/core/schedule/clock.ts'
import { Keep, SlowMarks } from '../../../src/history/keep.ts'
import { HISTORY_RING_BYTES, RequestHistory } from '../../../src/history/process-history.ts'
import { ThreadHistory } from '../../../src/history/recorder.ts'
import type { HistoryEntry } from '../../../src/history/store.ts'
import { createRecordRing, RecordReader } from '../../../src/recording/ring.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SEED, seededRandom } from '../../support/random.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const ROUTE = {
  number: 3,
  method: 'GET',
  path: '/orders/:id',
  plugin: 'shop.Orders',
  kind: 'endpoint' as const,
  zone: 'application',
}

/** A history that keeps a share of what has not failed, and what it has written. */
function historyOf(share: number) {
  const ring = createRecordRing(HISTORY_RING_BYTES)
  const settings = { historySample: share, nodeEnv: 'production', domainsDir: [] }
  const history = new RequestHistory(new ThreadHistory('primary', settings, { ring, clock: anchorHere() }, null))
  const reader = new RecordReader(ring)
  const written = (): HistoryEntry[] => {
    const entries: HistoryEntry[] = []
    reader.read(10_000, (json) => entries.push(JSON.parse(json) as HistoryEntry))
    return entries
  }
  return { history, written }
}

/** A request that has begun so many milliseconds ago. */
const requestOf = (ms: number, changes: Partial<ObservedRequest> = {}): ObservedRequest => ({
  requestId: 'req_1',
  key: changes.requestId ?? 'req_1',
  method: 'GET',
  path: '/orders/7',
  route: ROUTE,
  startMs: exactMs() - ms,
  servedBy: 1,
  isTold: false,
  ...changes,
})

it('a request that is like all others leaves nothing, and one that failed or took longest is kept', () => {
  const { history, written } = historyOf(0)
  for (let n = 0; n < 1000; n++) history.ended(requestOf(50), 200, exactMs())
  written()
  history.ended(requestOf(10), 200, exactMs())
  history.ended(requestOf(10), 404, exactMs())
  assert.deepEqual(written(), [])
  history.ended(requestOf(10, { requestId: 'req_failed' }), 500, exactMs())
  history.ended(requestOf(5000, { requestId: 'req_slow' }), 200, exactMs())
  const [failed, slow] = written()
  assert.ok(failed?.type === 'request' && slow?.type === 'request')
  assert.deepEqual(
    [failed.id, failed.status, failed.method, failed.path, failed.route, failed.plugin, failed.lane],
    ['req_failed', 500, 'GET', '/orders/7', '/orders/:id', 'shop.Orders', 1],
  )
  assert.equal(slow.id, 'req_slow')
  assert.ok(slow.ms >= 5000 && Math.abs(slow.atMs + slow.ms - Date.now()) < 1000)
})

it('an open request is told of once, and its end is then kept', () => {
  const { history, written } = historyOf(0)
  const request = requestOf(50)
  history.isOpen(request, exactMs())
  assert.deepEqual(written(), [])
  history.isOpen(request, exactMs() + 100)
  history.isOpen(request, exactMs() + 200)
  history.ended(request, 200, exactMs())
  assert.deepEqual(
    written().map(({ type }) => type),
    ['begun', 'request'],
  )
})

it('in a sample, so many open requests are told of in a second and no more', () => {
  const { history, written } = historyOf(0.01)
  const nowMs = Math.ceil(exactMs() / 1000) * 1000
  for (let n = 0; n < 500; n++) history.isOpen(requestOf(1000), nowMs)
  assert.equal(written().length, 100)
  history.isOpen(requestOf(1000), nowMs + 1000)
  assert.equal(written().length, 1)
})

it('the pages of the runtime are kept only if they failed', () => {
  const { history, written } = historyOf(1)
  const route = { ...ROUTE, path: '/system/status', zone: 'system' }
  history.isOpen(requestOf(1000, { route }), exactMs())
  history.ended(requestOf(1, { route }), 200, exactMs())
  assert.deepEqual(written(), [])
  history.ended(requestOf(1, { route }), 500, exactMs())
  assert.equal(written().length, 1)
})

it('what has no route is kept under no name', () => {
  const { history, written } = historyOf(1)
  history.ended(requestOf(1, { route: null }), 404, exactMs())
  const [entry] = written()
  assert.ok(entry?.type === 'request')
  assert.deepEqual([entry.route, entry.plugin], ['', ''])
})

it(`about one in a hundred durations is above the mark of its kind, seed ${SEED}`, () => {
  const random = seededRandom(SEED)
  const marks = new SlowMarks()
  const above = [0, 0]
  for (let n = 0; n < 200_000; n++) {
    for (const [kind, factor] of [1, 1000].entries()) {
      if (marks.isAbove(kind * 300, factor * (1 + random(10_000)))) above[kind]!++
    }
  }
  for (const count of above) assert.ok(count > 1000 && count < 3000, `${count} of 200,000`)
})

it('all threads choose the same requests for a sample', () => {
  const chosen = (): string[] => {
    const keep = new Keep(0.5)
    const ids = Array.from({ length: 100 }, (_, n) => `req_abcdefghijkl_${n.toString(36)}`)
    return ids.filter((id) => keep.keeps(id, keep.kindOf('GET /orders'), 0, 0))
  }
  const here = chosen()
  assert.ok(here.length > 25 && here.length < 75, `${here.length} of 100`)
  assert.deepEqual(chosen(), here)
})

test('in production a sample is kept without being asked for, every failure, and what kill -9 has cut off', async (t) => {
  const folder = temporaryFolder(t)
  const env = {
    NODE_ENV: 'production',
    HISTORY_ENABLED: '',
    HISTORY_SAMPLE: '0',
    HISTORY_PATH: join(folder, 'history.db'),
    REPLICA_ID: 'shop',
  }
  const domains = [SHIPPED, fileURLToPath(new URL('./fixtures', import.meta.url))]
  const list = async (service: Heddle, query = ''): Promise<RequestSummary[]> =>
    (await service.json(`/system/requests?route=/orders&${query}`)).body as RequestSummary[]
  const service = await startHeddle(t, { domains, lanes: 1, env })
  assert.equal((await service.fetch('/orders/broken')).status, 500)
  void service.fetch('/orders/slow?ms=60000').catch(() => {})
  const isKept = async (query: string, route: string) => (await list(service, query)).some((row) => row.route === route)
  await until(() => isKept('status=failed&text=no such column: missing', '/orders/broken'), 'the failure is kept')
  await until(() => isKept('status=open', '/orders/slow'), 'the open one is kept')
  await service.stop('SIGKILL')
  const next = await startHeddle(t, { domains, lanes: 1, env })
  await until(async () => (await list(next, 'status=unfinished')).length === 1, 'it is known that it was cut off')
})
