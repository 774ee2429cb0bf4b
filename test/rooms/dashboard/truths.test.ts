import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { DeadLetter, LaneInfo } from '#heddle'
import type { PluginRow } from '../../../domains/system/plugin-figures/plugin-table.ts'
import { browser } from '../../support/browser.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const SETTLE_DAY = `
export default class SettleDay {
  constructor({ scheduler, http, event_bus }) {
    scheduler.every('settle', 200, () => { throw new Error('The ledger does not balance') })
    event_bus.subscribe('day.ended', () => { throw new Error('The printer is on fire') }, { retries: 0 })
    http.addEndpoint('/end', 'POST', async () => ({ id: await event_bus.publish('day.ended', { sum: 'secret-7' }) }))
  }
}
`
/** Each event ends the thread that handles it. */
const END_THREADS = `
export default class EndThreads {
  constructor({ http, event_bus }) {
    event_bus.subscribe('thread.ended', () => {
      setImmediate(() => { throw new Error('The lift is stuck') })
      return new Promise(() => {})
    }, { group: 'lifts' })
    http.addEndpoint('/lift', 'POST', async () => ({ id: await event_bus.publish('thread.ended', {}) }))
  }
}
`
const [WRITE, READ] = ['write-'.repeat(8), 'read-'.repeat(8)]

async function start(t: TestContext, env: Record<string, string>): Promise<Heddle> {
  const folder = await folderOf(t, { 'domains/shop/plugins/settle-day.ts': SETTLE_DAY })
  const all = { SYSTEM_DOMAIN: 'true', SQLITE_PATH: join(folder, 'truths.db'), ...env }
  return startHeddle(t, { domains: [`${folder}/domains`, SHIPPED], lanes: 1, env: all })
}

for (const [name, env] of [
  ['a history', { HISTORY_ENABLED: 'true' }],
  ['a sample of the history', { HISTORY_ENABLED: 'true', HISTORY_SAMPLE: '0.01' }],
  ['no history', { HISTORY_ENABLED: 'false' }],
] as const) {
  test(`with ${name} a job that fails is seen: in its row, in the sentences, and in what has failed`, async (t) => {
    const chromium = await browser(t)
    if (chromium === null) return
    const heddle = await start(t, env)
    const row = async () => {
      const { plugins } = (await heddle.json('/system/plugins')).body as { plugins: PluginRow[] }
      return plugins.flatMap(({ handlers }) => handlers).find((handler) => handler.name === 'settle')!
    }
    const counted = await until(async () => {
      const handler = await row()
      return handler.errors !== null && handler.errors > 2 ? handler : undefined
    }, 'the failed runs')
    assert.equal(counted.errors, counted.calls)
    assert.ok(Date.parse(counted.from!) <= Date.now())
    assert.deepEqual([counted.job!.schedule.kind, counted.job!.fires_here], ['every', true])

    const page = await chromium.newPage({ viewport: { width: 1280, height: 800 } })
    await page.goto(`${heddle.url}/system/dashboard#plugins`)
    await page
      .locator('.answers', { hasText: /settle of shop\.SettleDay failed \d+ of \d+ times in the last [\d. a-z]+\./ })
      .waitFor()
    await page.locator('.figure[data-state="bad"]', { hasText: /Failed, last (minute|\d+ s)\d+\d* jobs?/ }).waitFor()
  })
}

test('the payload of a dead letter is for the write token, and for everybody outside of production', async (t) => {
  const letterOf = async (heddle: Heddle, token?: string): Promise<DeadLetter> => {
    await heddle.fetch('/end', { method: 'POST' })
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return until(async () => {
      const answer = await heddle.fetch('/system/dead-letters', { headers })
      const text = await answer.text()
      assert.ok(!text.includes('secret-7'), text)
      return (JSON.parse(text) as DeadLetter[])[0]
    }, 'the letter')
  }
  const ask = async (heddle: Heddle, id: string, token?: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await heddle.fetch(`/system/dead-letters/${id}/payload`, { headers })
    const { data } = (await response.json()) as { data?: { payload: unknown } }
    return [response.status, data?.payload]
  }
  const guarded = await start(t, { NODE_ENV: 'production', SYSTEM_TOKEN: WRITE, SYSTEM_READ_TOKEN: READ })
  const { id } = await letterOf(guarded, WRITE)
  assert.deepEqual(await ask(guarded, id, WRITE), [200, { sum: 'secret-7' }])
  assert.deepEqual(await ask(guarded, id, READ), [403, undefined])
  assert.deepEqual(await ask(guarded, id), [401, undefined])
  assert.equal((await ask(guarded, 'dl_0', WRITE))[0], 404)
  const open = await start(t, { NODE_ENV: 'production' })
  assert.deepEqual(await ask(open, (await letterOf(open)).id), [403, undefined])
  const dev = await start(t, { NODE_ENV: 'development' })
  assert.deepEqual(await ask(dev, (await letterOf(dev)).id), [200, { sum: 'secret-7' }])
})

test('a subscriber that ends its lanes has these attempts among its errors', async (t) => {
  const folder = await folderOf(t, { 'domains/lift/plugins/end-threads.ts': END_THREADS })
  const env = { SYSTEM_DOMAIN: 'true', SQLITE_PATH: join(folder, 'lift.db'), HISTORY_ENABLED: 'true' }
  const heddle = await startHeddle(t, { domains: [`${folder}/domains`, SHIPPED], lanes: 2, env })
  await heddle.fetch('/lift', { method: 'POST' })
  const row = await until(async () => {
    const { plugins } = (await heddle.json('/system/plugins')).body as { plugins: PluginRow[] }
    const handlers = plugins.flatMap(({ handlers }) => handlers)
    const found = handlers.find(({ name }) => name === 'thread.ended')
    return found?.errors === 3 ? { ...found, others: handlers.filter(({ plugin }) => plugin === 'lifts') } : undefined
  }, 'three attempts that ended their lanes')
  const { plugin, calls, p50_ms, others } = row
  assert.deepEqual({ plugin, calls, p50_ms, others }, { plugin: 'lift.EndThreads', calls: 3, p50_ms: null, others: [] })
})

test('a lane that does not run has no figures, in the list and in the metrics', async (t) => {
  const folder = await folderOf(t, { 'domains/lift/plugins/end-threads.ts': END_THREADS })
  const env = { SYSTEM_DOMAIN: 'true', SQLITE_PATH: join(folder, 'lift.db') }
  const heddle = await startHeddle(t, { domains: [`${folder}/domains`, SHIPPED], lanes: 1, env })
  await heddle.fetch('/lift', { method: 'POST' })
  const lane = await until(async () => {
    const lanes = (await heddle.json('/system/lanes')).body as LaneInfo[]
    return lanes.find(({ role, state }) => role === 'quarantine' && state === 'idle')
  }, 'the quarantine lane is idle')
  assert.deepEqual([lane.loop_delay_ms, lane.heap_bytes, lane.external_bytes], [null, null, null])
  const text = await (await heddle.fetch('/system/metrics/prometheus')).text()
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const series = samples.map((line) => line.slice(0, line.lastIndexOf(' ')))
  assert.deepEqual(
    series.filter((name, n) => series.indexOf(name) !== n),
    [],
    'each series once',
  )
  const ofLane = series.filter((name) => name.includes('role="quarantine"')).map((name) => name.split('{')[0])
  assert.ok(ofLane.includes('heddle_lane_restarts_total'), series.join('\n'))
  for (const name of ['heddle_lane_heap_bytes', 'heddle_lane_loop_delay_seconds', 'heddle_lane_responsive'])
    assert.ok(!ofLane.includes(name), name)
})
