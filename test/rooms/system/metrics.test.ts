import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { startSystem } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

const PAGE = join(SHIPPED, 'system/README.md')
/** A metric, its labels and its value. */
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (\S+)$/

async function scrape(heddle: Heddle) {
  const response = await heddle.fetch('/system/metrics/prometheus')
  return { response, text: await response.text() }
}

/** Parses the whole page by the grammar of the format. @returns the values by `name{labels}` */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  let family = ''
  assert.ok(text.endsWith('\n'))
  for (const line of text.slice(0, -1).split('\n')) {
    const header = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line)
    if (header !== null) {
      family = header[2]!
      if (header[1] === 'TYPE') assert.match(header[3]!, /^(counter|gauge|histogram)$/)
      continue
    }
    const sample = SAMPLE.exec(line)
    assert.ok(sample !== null, `not a sample: ${line}`)
    assert.ok(sample[1]!.startsWith(family), `${line} stands below ${family}`)
    const key = `${sample[1]}{${sample[2]}}`
    assert.ok(!samples.has(key), `twice: ${key}`)
    samples.set(key, Number(sample[3]))
    assert.ok(!Number.isNaN(samples.get(key)))
  }
  return samples
}

test('the Prometheus page', async (t) => {
  const heddle = await startSystem(t, { flaky: true, env: { HEDDLE_RELEASE: 'shop 7' } })

  await t.test('has the content type of the text format 0.0.4', async () => {
    const { response } = await scrape(heddle)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  })

  await t.test('counts the calls and errors of all threads, and sorts their durations into buckets', async () => {
    for (let n = 0; n < 7; n++) await heddle.post('/probe/publish', { event: 'probe.metered', payload: {} })
    await heddle.post('/probe/publish', { event: 'probe.metered', payload: [1] })
    const labels = 'tool="event_bus",method="publish"'
    const samples = await until(async () => {
      const found = samplesOf((await scrape(heddle)).text)
      return found.get(`heddle_tool_calls_total{${labels}}`) === 8 ? found : null
    }, 'eight calls are counted')
    assert.equal(samples.get(`heddle_tool_errors_total{${labels}}`), 1)
    assert.equal(samples.get(`heddle_tool_call_duration_seconds_count{${labels}}`), 8)
    assert.ok(samples.get(`heddle_tool_call_duration_seconds_sum{${labels}}`)! > 0)
    const buckets = [...samples]
      .filter(([key]) => key.startsWith(`heddle_tool_call_duration_seconds_bucket{${labels},le=`))
      .map(([key, value]) => [/le="([^"]+)"/.exec(key)![1]!, value] as const)
    assert.equal(buckets.at(-1)![0], '+Inf')
    assert.equal(buckets.at(-1)![1], 8)
    for (let n = 1; n < buckets.length; n++) {
      assert.ok(buckets[n]![1] >= buckets[n - 1]![1], 'buckets are cumulative')
      if (n < buckets.length - 1) assert.ok(Number(buckets[n]![0]) > Number(buckets[n - 1]![0]))
    }
  })

  await t.test('has a gauge per lane and state, and a counter per event', async () => {
    // A lane measures its heap once per second.
    const samples = await until(async () => {
      const found = samplesOf((await scrape(heddle)).text)
      return found.get('heddle_lane_heap_bytes{lane="0"}')! > 1_000_000 ? found : null
    }, 'the heap is measured')
    assert.equal(samples.get('heddle_lanes{state="ready"}'), 2)
    assert.equal(samples.get('heddle_lane_restarts_total{lane="1"}'), 0)
    assert.equal(samples.get('heddle_events_total{event="probe.metered"}'), 7)
  })

  await t.test('counts requests by route and class of status, and sorts their durations into buckets', async () => {
    for (let n = 0; n < 3; n++) await heddle.fetch('/probe/counts')
    await heddle.fetch('/probe/nowhere')
    const labels = 'method="GET",route="/probe/counts",plugin="probe.DoWork"'
    const samples = samplesOf((await scrape(heddle)).text)
    assert.equal(samples.get(`heddle_http_requests_total{${labels},status="2xx"}`), 3)
    assert.equal(samples.get('heddle_http_requests_total{method="",route="unknown",plugin="",status="4xx"}'), 1)
    assert.equal(samples.get(`heddle_http_request_duration_seconds_count{${labels}}`), 3)
    assert.equal(samples.get(`heddle_http_request_duration_seconds_bucket{${labels},le="+Inf"}`), 3)
    assert.ok([...samples.keys()].every((key) => !key.includes('route="/system/')))
  })

  await t.test('counts deliveries by subscriber and outcome, and measures what waits for each', async () => {
    await heddle.post('/probe/publish', { event: 'probe.work', payload: {} })
    const ofFailing = 'event="probe.work",subscriber="probe.FailWork.anonymous"'
    const samples = await until(async () => {
      const found = samplesOf((await scrape(heddle)).text)
      const isDead = found.get(`heddle_deliveries_total{${ofFailing},outcome="dead"}`) === 1
      return isDead && found.get('heddle_stored_deliveries{}') === 0 ? found : null
    }, 'the delivery is given up, and all rows are gone')
    assert.equal(samples.get(`heddle_delivery_retries_total{${ofFailing},reason="failed"}`), 1)
    assert.equal(samples.get(`heddle_deliveries_total{${ofFailing},outcome="done"}`), 0)
    assert.equal(samples.get(`heddle_queue_deliveries{${ofFailing}}`), 0)
    assert.equal(samples.get(`heddle_queue_oldest_age_seconds{${ofFailing}}`), 0)
  })

  await t.test('says what runs, since when, and what became of reloads', async () => {
    const samples = samplesOf((await scrape(heddle)).text)
    const [build] = [...samples.keys()].filter((key) => key.startsWith('heddle_build_info'))
    assert.match(build!, /release="shop 7",version="\d+\.\d+\.\d+",node="22\./)
    assert.equal((await heddle.json('/system/status')).body.release, 'shop 7')
    const age = Date.now() / 1000 - samples.get('process_start_time_seconds{}')!
    assert.ok(age > 0 && age < 600, String(age))
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes'])
      assert.ok(samples.get(`${name}{}`)! > 0, name)
    assert.equal(samples.get('heddle_reloads_total{result="ok"}'), 0)
    assert.equal(samples.get('heddle_started_after_death{}'), 0)
    assert.equal(samples.get('heddle_transaction_repeats_total{}'), 0)
  })

  await t.test('has the metrics that the page of the domain tells of, and no others', async () => {
    const { text } = await scrape(heddle)
    const page = await readFile(PAGE, 'utf8')
    const table = page.slice(page.indexOf('## Metrics'), page.indexOf('## The dashboard'))
    const told = table.split('\n').flatMap((line) => line.split('|')[1]?.match(/\b(?:heddle|process)_\w+/g) ?? [])
    const scraped = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name)
    assert.deepEqual(told.sort(), scraped.sort())
  })

  await t.test('escapes label values', async () => {
    await heddle.post('/ailing/odd')
    await until(
      async () =>
        samplesOf((await scrape(heddle)).text).get(
          'heddle_tool_calls_total{tool="flaky",method="odd \\"name\\" \\\\ \\n"}',
        ) === 1,
      'the call of a method with an odd name',
    )
  })
})
