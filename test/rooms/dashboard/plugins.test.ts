import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HandlerFigures, JobInfo, RequestSink } from '#heddle'
import { type PluginRow, pluginTable } from '../../../domains/system/plugin-figures/plugin-table.ts'
import { WatchedRoutes } from '../../../domains/system/plugin-figures/watched-routes.ts'
import { browser, type Page } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { startBakery, times } from './bakery.ts'

const figures = (plugin: string, name: string, calls: number, ms: number): HandlerFigures => ({
  plugin,
  kind: 'request',
  name,
  calls,
  errors: 0,
  p50_ms: ms / 2,
  p95_ms: ms,
  p99_ms: ms,
})

const counted = (what: 'all' | 'errors' | 'none') => {
  const count = { what, fromMs: 1000 }
  return { request: { what: 'all' as const, fromMs: 1000 }, event: count, job: count }
}

test('what nobody has measured is null, and what was counted says since when', () => {
  const job = (name: string, more: Partial<JobInfo> = {}): JobInfo => ({
    ...{ plugin: 'shop.Settle', name, schedule: { kind: 'every', everyMs: 1000 }, fires_here: true },
    ...{ next_run: null, runs: 60, failures: 60, skipped: 0, running: false },
    ...more,
  })
  const topology = { 'a.b': { emitters: [], subscribers: ['shop.Hear'], fire_count: 9 } }
  const jobs = [job('settle-day'), job('elsewhere', { fires_here: false, runs: 0, failures: 0 })]
  const kept: HandlerFigures[] = [
    { ...figures('shop.Hear', 'a.b', 3, 50), kind: 'event', errors: 2 },
    { ...figures('shop.Settle', 'settle-day', 1, 50), kind: 'job', errors: 1 },
  ]
  const of = (what: 'all' | 'errors' | 'none', now: HandlerFigures[]) =>
    Object.fromEntries(
      pluginTable({ routes: [], topology, jobs }, now, [], counted(what), 500)
        .flatMap(({ handlers }) => handlers)
        .map(({ name, calls, errors, p95_ms, from }) => [name, [calls, errors, p95_ms, from?.slice(17, 23) ?? null]]),
    )
  const unknown = [null, null, null, null]
  const runs = [60, 60, null, '00.500']
  assert.deepEqual(of('none', []), { 'a.b': unknown, 'settle-day': runs, elsewhere: unknown })
  assert.deepEqual(of('errors', []), { 'a.b': [null, 0, null, '01.000'], 'settle-day': runs, elsewhere: unknown })
  assert.deepEqual(of('errors', kept), { 'a.b': [null, 2, null, '01.000'], 'settle-day': runs, elsewhere: unknown })
  assert.deepEqual(of('all', []), {
    'a.b': [0, 0, null, '01.000'],
    'settle-day': [0, 0, null, '01.000'],
    elsewhere: unknown,
  })
  assert.deepEqual(of('all', kept)['settle-day'], [1, 1, 50, '01.000'])
})

test('plugins and their handlers are sorted by what is slow, and one slow call of a few is not', () => {
  const topology = { 'a.b': { emitters: [], subscribers: ['shop.Idle', 'system.Own'], fire_count: 0 } }
  const now = [
    figures('shop.Fast', 'GET /fast', 100, 5),
    figures('shop.Fast', 'GET /rare', 5, 80),
    figures('shop.Slow', 'GET /slow', 100, 50),
    figures('shop.Slow', 'GET /slower', 100, 60),
  ]
  const before = [figures('shop.Slow', 'GET /slow', 10, 4), figures('shop.Gone', 'GET /gone', 10, 4)]
  const rows = pluginTable({ routes: [], topology, jobs: [] }, now, before, counted('all'), 0)
  assert.deepEqual(
    rows.map(({ plugin, slow_ms, handlers }) => [plugin, slow_ms, handlers.map(({ name }) => name)]),
    [
      ['shop.Slow', 60, ['GET /slower', 'GET /slow']],
      ['shop.Fast', 40, ['GET /rare', 'GET /fast']],
      ['shop.Idle', null, ['a.b']],
    ],
  )
  assert.deepEqual(rows[0]!.handlers[1]!.before, { calls: 10, errors: 0, p50_ms: 2, p95_ms: 4, p99_ms: 4 })
})

test('without a history routes are measured while somebody asks, by the version of the code', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const sinks = new Set<RequestSink>()
  const addRequestSink = (sink: RequestSink) => {
    sinks.add(sink)
    return () => void sinks.delete(sink)
  }
  const answer = (duration_ms: number) => {
    for (const sink of sinks)
      sink({ request_id: 'r', method: 'GET', route: '/a', plugin: 'shop.A', status: 200, duration_ms })
  }
  const watched = new WatchedRoutes({ addRequestSink })
  assert.deepEqual(watched.look(10, 100), { now: { from_ms: 100, handlers: [] }, before: null })
  answer(2)
  watched.look(200, 201)
  answer(20)
  answer(20)
  const { now, before } = watched.look(200, 300)
  assert.deepEqual([now.from_ms, now.handlers[0]!.calls, before!.handlers[0]!.calls], [201, 2, 1])
  t.mock.timers.tick(30_000)
  assert.equal(sinks.size, 0)
})

const answers = (page: Page, text: RegExp) => page.locator('.answers', { hasText: text }).waitFor()

test('the page answers which plugin is slow and what is different since the last reload, and leads to the requests', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const { service, slower } = await startBakery(t, { HISTORY_ENABLED: 'true' })
  await times(8, () => service.fetch('/bread'))
  await slower(300)
  const cake = service.fetch('/cake/2')
  await times(6, () => Promise.all([service.fetch('/bread'), service.fetch('/burnt')]))
  await cake

  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${service.url}/system/dashboard#plugins`)
  await answers(
    page,
    /Slowest is bakery\.IceCake: GET \/cake\/:id takes [\d.]+ m?s at p50, of 1 call in the last [\d. a-z]+\./,
  )
  await answers(page, /Since the reload .* ago:/)
  await answers(page, /GET \/bread takes \d+ ms instead of [\d.]+ ms at p50/)
  await answers(page, /GET \/burnt fails in 100 % of its calls, it was not called before/)
  const plugins = await page.locator('.plugin-row').allTextContents()
  assert.match(plugins[0]!, /bakery\.IceCake/)
  for (const [name, kind] of [
    ['bread.sold', 'event'],
    ['sweep', 'job'],
    ['GET /hello/:name', 'route'],
  ])
    assert.equal(await page.locator('.handlers tr', { hasText: name! }).locator('.tag').textContent(), kind)

  await page.getByRole('button', { name: 'Errors' }).click()
  await until(
    async () => /SellBread/.test((await page.locator('.plugin-row').first().textContent())!),
    'sorted by errors',
  )
  await page.locator('.handlers a', { hasText: 'GET /cake/:id' }).click()
  await page.locator('.request-row', { hasText: '/cake/2' }).first().waitFor()
  assert.equal(new URL(page.url()).searchParams.get('q'), 'plugin:bakery.IceCake route:/cake/:id')
  assert.equal(await page.locator('.request-row', { hasText: '/bread' }).count(), 0)
})

test('without a history the page shows the routes, and says what is missing', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const { service } = await startBakery(t, { HISTORY_ENABLED: 'false' })
  const page = await chromium.newPage()
  await page.goto(`${service.url}/system/dashboard#plugins`)
  await page.getByText('No route was called in the last').waitFor()
  await page.getByText('The code before was not measured, since nobody looked').waitFor()
  await times(3, () => service.fetch('/cake/1'))
  await answers(page, /Slowest is bakery\.IceCake/)
  await page.getByText('subscribers are not measured').waitFor()
  const { plugins } = (await service.json('/system/plugins')).body as { plugins: PluginRow[] }
  assert.equal(plugins[0]!.handlers[0]!.calls, 3)
})

test('of a sample the routes are counted whole, and the report says so', async (t) => {
  const { service } = await startBakery(t, { HISTORY_ENABLED: 'true', HISTORY_SAMPLE: '0.001' })
  const report = async () => (await service.json('/system/plugins')).body as { missing: string[]; plugins: PluginRow[] }
  assert.match((await report()).missing[0]!, /^The history keeps a sample/)
  await times(30, () => service.fetch('/bread'))
  const routes = (await report()).plugins.flatMap(({ handlers }) => handlers)
  assert.equal(routes.find(({ name }) => name === 'GET /bread')!.calls, 30)
})
