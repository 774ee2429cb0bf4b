import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { prometheusServer } from '../../support/servers/prometheus.ts'
import { systemDomain } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { expressionsOf, metricsIn, readDashboard } from './dashboard.ts'
import { DEPLOY } from './manifests.ts'

const RULES = join(DEPLOY, 'prometheus/heddle.rules.yml')
const UNIT_TESTS = fileURLToPath(new URL('./alerts.promtool.yml', import.meta.url))
const SHOP = fileURLToPath(new URL('../../fixtures/monitored', import.meta.url))
const READ_TOKEN = 'prometheus-may-read'
/** What stands in for the variables of the dashboard. */
const CHOSEN = { $job: 'heddle', $instance: '.*', $__rate_interval: '30s' }
/** Metrics of trouble, which have no series before it. */
const OF_TROUBLE = ['heddle_http_places_refused_total', 'heddle_framing_faults_total']

type Sample = { metric: Record<string, string>; value: [number, string] }
type Rules = { groups: { rules: { name: string; health: string; lastError?: string; state: string }[] }[] }

const configurationOf = (target: string): string => `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${RULES}']
scrape_configs:
  - job_name: heddle
    metrics_path: /system/metrics/prometheus
    authorization: { credentials: ${READ_TOKEN} }
    static_configs: [{ targets: ['${target}'] }]
`

test('Prometheus scrapes a service, and has what the shipped alerts and the dashboard ask for', async (t) => {
  const env = { SYSTEM_TOKEN: 'operators-may-do-all', SYSTEM_READ_TOKEN: READ_TOKEN, HEDDLE_RELEASE: 'shop-7' }
  const service = await startHeddle(t, { domains: [systemDomain(), SHOP], lanes: 2, env })
  const prometheus = await prometheusServer(t, configurationOf(new URL(service.url).host))
  if (prometheus === null) return
  const query = async (expr: string): Promise<Sample[]> =>
    (await prometheus.ask<{ result: Sample[] }>('query', { query: expr })).result
  const numberOf = async (expr: string): Promise<number> => Number((await query(expr))[0]?.value[1] ?? Number.NaN)
  const rules = async () => (await prometheus.ask<Rules>('rules')).groups.flatMap((group) => group.rules)

  await t.test('promtool takes the rules and the configuration, and the unit tests of the rules pass', async () => {
    assert.match(await prometheus.check('check', 'rules', RULES), /SUCCESS: 17 rules found/)
    await prometheus.check('check', 'config', join(DEPLOY, 'prometheus/prometheus.yml'))
    assert.match(await prometheus.check('test', 'rules', UNIT_TESTS), /SUCCESS/)
  })

  await t.test('the unit tests name every alert', () => {
    const alerts = [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name!)
    const tests = readFileSync(UNIT_TESTS, 'utf8')
    assert.deepEqual(
      alerts.filter((name) => !new RegExp(`alertname(?:="|: )${name}\\b`).test(tests)),
      [],
    )
  })

  // What a counter begins with is no increase.
  await until(async () => (await numberOf('sum(heddle_deliveries_total{outcome="dead"})')) === 0, 'the first scrape')
  for (const times of [1, 19]) {
    for (let n = 0; n < times; n++) {
      await service.fetch('/shop')
      for (let failures = 0; failures < 3; failures++) await service.fetch('/shop/broken')
      await service.post(`/shop/sales/${n}`, {})
    }
    const answers = 'heddle_http_requests_total{route="/shop",status="2xx"}'
    await until(async () => (await numberOf(answers)) >= times, 'the requests are scraped')
  }
  await until(
    async () => (await numberOf('sum(heddle_deliveries_total{outcome="dead"})')) === 20,
    'the traffic is scraped',
  )
  await until(
    async () => (await query('rate(heddle_starved_seconds_total[30s])')).length > 0,
    'all threads were looked at',
  )

  await t.test('every metric of the alerts and of the dashboard is there', async () => {
    const scraped = await prometheus.ask<{ metric: string }[]>('targets/metadata', { match_target: '{job="heddle"}' })
    const known = new Set(scraped.map(({ metric }) => metric))
    const used = metricsIn(
      `${readFileSync(RULES, 'utf8').replace(/^ *#.*$/gm, '')}\n${expressionsOf(readDashboard())
        .map(({ expr }) => expr)
        .join('\n')}`,
    )
    assert.ok(used.length > 30, used.join(' '))
    for (const name of used) {
      assert.ok(known.has(name.replace(/_(?:bucket|sum|count)$/, '')), `${name} is not scraped`)
      const { length } = await query(`{__name__="${name}"}`)
      assert.ok(length > 0 || OF_TROUBLE.includes(name), `${name} has no series`)
    }
    assert.deepEqual(
      OF_TROUBLE.filter((name) => !used.includes(name)),
      [],
    )
  })

  await t.test('every expression of the dashboard is valid, and gives data', async () => {
    const empty: string[] = []
    for (const { at, expr } of expressionsOf(readDashboard())) {
      let text = expr
      for (const [variable, value] of Object.entries(CHOSEN)) text = text.replaceAll(variable, value)
      if ((await query(text)).length === 0) empty.push(at)
    }
    assert.deepEqual(empty.sort(), [
      // Nothing has been refused, no tool has failed, and nobody has reloaded it.
      'Connections and places C',
      'Connections closed for their framing A',
      "Errors that are the tool's own A",
      'annotation Reloads',
      'annotation Starts',
    ])
    const [build] = await query('heddle_build_info')
    assert.equal(build!.metric.release, 'shop-7')
  })

  await t.test('every alert is evaluated, and those that have a reason fire', async () => {
    await until(async () => (await rules()).every(({ health }) => health !== 'unknown'), 'all were evaluated')
    for (const { name, health, lastError = '' } of await rules())
      assert.deepEqual([name, health, lastError], [name, 'ok', ''])
    const stateOf = async (name: string) => (await rules()).find((rule) => rule.name === name)!.state
    await until(async () => (await stateOf('HeddleDeadLetters')) === 'firing', 'the dead letters are told of')
    // It waits for five minutes of it.
    await until(async () => (await stateOf('HeddleErrorRate')) === 'pending', 'the failures are told of')
    const firing = (await rules()).filter(({ state }) => state === 'firing').map(({ name }) => name)
    assert.deepEqual(firing, ['HeddleDeadLetters'])
  })
})
