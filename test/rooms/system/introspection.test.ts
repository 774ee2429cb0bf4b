import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSystem } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('the introspection endpoints', async (t) => {
  const heddle = await startSystem(t)
  const { body: published } = await heddle.post(
    '/probe/publish',
    { event: 'probe.noted', payload: { token: 'secret-value', user: 1 } },
    { 'x-request-id': 'request-of-the-test' },
  )
  const { id } = published.data

  await t.test('traces/flat is a bare array of event records, with keys and never values', async () => {
    const { status, headers, body } = await heddle.json('/system/traces/flat')
    assert.equal(status, 200)
    assert.match(headers.get('content-type')!, /^application\/json/)
    assert.ok(Array.isArray(body))
    const record = body.find((each: { id: string }) => each.id === id)
    assert.match(record.timestamp, ISO)
    assert.match(id, /^evt_[0-9a-f]{32}$/)
    assert.deepEqual(record, {
      id,
      parent_id: null,
      event: 'probe.noted',
      emitter: 'probe.PublishEvents',
      subscribers: [],
      payload_keys: ['token', 'user'],
      timestamp: record.timestamp,
      request_id: 'request-of-the-test',
      trace_id: null,
    })
    assert.ok(!JSON.stringify(body).includes('secret-value'))
  })

  await t.test('traces/tree is a bare array of root nodes; a leaf has no children', async () => {
    const { body } = await heddle.json('/system/traces/tree')
    const node = body.find((each: { id: string }) => each.id === id)
    assert.equal(node.event, 'probe.noted')
    assert.deepEqual(node.children, [])
  })

  await t.test('traces/flat ends at the last 500, oldest first', async () => {
    await heddle.post('/probe/flood', { event: 'probe.flood', count: 600, batch: 200 })
    const records = await until(async () => {
      const { body } = await heddle.json('/system/traces/flat')
      return body.at(-1).payload_keys[0] === 'n_599' && body
    }, 'all events are traced')
    assert.equal(records.length, 500)
    assert.deepEqual(
      records.map((record: { payload_keys: string[] }) => record.payload_keys[0]),
      Array.from({ length: 500 }, (_, n) => `n_${n + 100}`),
    )
  })

  await t.test('events counts what fired and notes what the sources alone know of', async () => {
    const { body } = await heddle.json('/system/events')
    assert.deepEqual(Object.keys(body), ['topology'])
    const { topology } = body
    assert.deepEqual(topology['probe.flood'], {
      emitters: ['probe.PublishEvents'],
      subscribers: [],
      fire_count: 600,
    })
    assert.deepEqual(topology['probe.never'], {
      emitters: ['probe.PublishEvents'],
      subscribers: [],
      fire_count: 0,
      note: 'found in source but never fired',
    })
    assert.deepEqual(topology['probe.work'].subscribers.toSorted(), ['probe.DoWork', 'probe.FailWork'])
    assert.equal(topology['probe.work'].note, 'found in source but never fired')
    assert.deepEqual(topology['event.delivery.failed'].emitters, ['system.MonitorDeliveries'])
  })

  await t.test('status maps tools and plugins to their health, all of the system domain on the primary', async () => {
    // A lane that serves may not have told yet how its plugins are.
    const body = await until(async () => {
      const status = (await heddle.json('/system/status')).body
      return status.lanes.ready === 2 && !JSON.stringify(status.plugins).includes('"BOOTING"') && status
    }, 'both lanes')
    assert.deepEqual(Object.keys(body).sort(), ['lanes', 'listener', 'plugins', 'release', 'tools'])
    for (const { status, message } of Object.values<{ status: string; message: string | null }>(body.tools)) {
      assert.equal(status, 'OK')
      assert.ok(message === null || typeof message === 'string')
    }
    const faults = Object.entries<{ status: string }>(body.plugins).filter(([, { status }]) => status !== 'OK')
    assert.deepEqual(faults, [])
    assert.deepEqual(body.plugins['system.ShowStatus'], {
      status: 'OK',
      domain: 'system',
      tools: ['http', 'registry'],
    })
    assert.equal(body.lanes.ready, 2)
  })

  await t.test('health/live says how long it has been alive', async () => {
    const { status, body } = await heddle.json('/system/health/live')
    assert.equal(status, 200)
    assert.equal(body.success, true)
    assert.ok(body.data.uptime_sec > 0)
  })

  await t.test(
    'lint reports on the folders of DOMAINS_DIR; requests at the same time get the same report',
    async () => {
      const answers = await Promise.all(Array.from({ length: 5 }, () => heddle.json('/system/lint')))
      for (const { status, body } of answers) {
        assert.equal(status, 200)
        assert.deepEqual(body, answers[0]!.body)
      }
      const { ok, findings, checked } = answers[0]!.body
      assert.ok(checked.plugins >= 15)
      assert.ok(checked.routes >= 15)
      // The probe's events have no contracts on purpose; the shipped domain has no findings.
      assert.equal(ok, false)
      assert.deepEqual(
        findings.filter(({ file }: { file: string }) => file.includes('/domains/system/')),
        [],
      )
      const { rule, severity, file, line, message } = findings[0]
      assert.deepEqual(
        [typeof rule, typeof severity, typeof file, typeof line, typeof message],
        ['string', 'string', 'string', 'number', 'string'],
      )
    },
  )
})
