import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import { post, startWith } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const THREADS = ['lane', 'primary'] as const

test('listeners and sinks', async (t) => {
  // The database would have to store an event of the primary before.
  const heddle = await startWith(t, 'observed', { lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } })
  const get = async (path: string) => (await heddle.json(path)).body
  const flat = (): Promise<EventRecord[]> => get('/system/traces/flat')

  // With its first event the primary loads the contracts: only what comes after it goes out at once.
  await post(heddle, '/primary/publish', { event: 'probe.first', payload: {} })

  for (const where of THREADS) {
    const other = where === 'lane' ? 'primary' : 'lane'

    await t.test(
      `an event of the ${where} is heard there before publish returns, and in the ${other} too`,
      async () => {
        const published = await post(heddle, `/${where}/publish`, {
          event: `probe.${where}`,
          payload: { token: 'value' },
        })
        assert.equal(published.atOnce, 1)
        const heard = await until(
          async () => (await get(`/heard/${other}`)).records.find(({ id }: EventRecord) => id === published.id),
          'the record',
        )
        const own = (await get(`/heard/${where}`)).records.filter(({ id }: EventRecord) => id === published.id)
        const shown = (await flat()).find(({ id }) => id === published.id)
        assert.deepEqual(heard, shown)
        assert.deepEqual(own, [shown])
      },
    )

    await t.test(`a log call of the ${where} is given to sinks there at once, and in the ${other} soon`, async () => {
      const { atOnce } = await post(heddle, `/${where}/log`)
      const identity = where === 'lane' ? 'probe.ListenInLane' : 'probe.ListenInPrimary'
      assert.equal(atOnce.length, 1)
      assert.match(atOnce[0][2], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const { request_id } = atOnce[0][4]
      assert.match(request_id, /^req_/)
      const details = { request_id, event_id: null, fields: { kept: 'beside it' } }
      assert.deepEqual(atOnce[0], ['WARNING', `said in the ${where}`, atOnce[0][2], identity, details])
      const ofIt = async (): Promise<string[][]> =>
        (await get(`/heard/${other}`)).logs.filter((line: string[]) => line[1] === `said in the ${where}`)
      await until(async () => (await ofIt()).length > 0, 'the line')
      assert.deepEqual(await ofIt(), atOnce)
    })
  }

  await t.test(
    'a failure reaches every failure listener of both threads, and every subscriber of its event',
    async () => {
      const payload = { password: 'secret' }
      const init = { 'x-request-id': 'request-that-fails' }
      const { id } = await post(heddle, '/lane/publish', { event: 'probe.fails', payload }, init)
      const failure = { event: 'probe.fails', event_id: id, subscriber: 'probe.Fail', error: 'no way', attempts: 2 }
      for (const where of THREADS) {
        const { failures, failuresToo } = await until(async () => {
          const heard = await get(`/heard/${where}`)
          return heard.failures.length > 0 ? heard : null
        }, `the failure in the ${where}`)
        assert.deepEqual([failures, failuresToo], [[failure], [failure]], where)
      }
      const report = await until(
        async () =>
          (await get('/delivered')).delivered.find(
            (each: { event: EventRecord }) => each.event.event === 'event.delivery.failed',
          ),
        'the report',
      )
      assert.deepEqual(report.data, failure)
      assert.deepEqual(Object.keys(report.event).sort(), [
        'attempt',
        'emitter',
        'event',
        'id',
        'parent_id',
        'request_id',
        'timestamp',
      ])
      assert.deepEqual(
        [report.event.parent_id, report.event.emitter, report.event.request_id, report.event.attempt],
        [id, 'system.MonitorDeliveries', 'request-that-fails', 1],
      )
      assert.equal((await get('/system/events')).topology['probe.fails'].fire_count, 1, 'attempts do not count')
    },
  )

  for (const where of THREADS) {
    await t.test(
      `what a failure listener of the ${where} publishes belongs to the failed event and its request`,
      async () => {
        const lament = await until(
          async () => (await flat()).find(({ event }) => event === `probe.lamented.${where}`),
          'the event',
        )
        const failed = (await flat()).find(({ event }) => event === 'probe.fails')!
        assert.deepEqual([lament.parent_id, lament.request_id], [failed.id, 'request-that-fails'])
      },
    )
  }

  await t.test('one that throws is logged once, and keeps nobody else from hearing', async () => {
    const before = heddle.logs.length
    await post(heddle, '/lane/publish', { event: 'probe.fails', payload: {} })
    await until(async () => (await get('/heard/lane')).failures.length === 2, 'the second failure')
    assert.ok(heddle.logs.length > before)
    for (const where of THREADS) {
      for (const what of ['listener', 'failure listener', 'log sink']) {
        const told = heddle.logs.filter(({ msg, error }) => `${msg} ${error}`.includes(`a bad ${what} in the ${where}`))
        assert.equal(told.length, 1, `${what} in the ${where}: ${JSON.stringify(told)}`)
      }
    }
  })

  await t.test('a payload is JSON by the time it arrives: a Date is its text, what is undefined is gone', async () => {
    await post(heddle, '/publish-typed')
    const typed = await until(
      async () =>
        (await get('/delivered')).delivered.find((each: { event: EventRecord }) => each.event.event === 'probe.typed'),
      'the event',
    )
    assert.deepEqual(typed.data, { at: '1970-01-01T00:00:00.000Z', list: ['1970-01-01T00:00:00.001Z'] })
    assert.deepEqual((await flat()).find(({ event }) => event === 'probe.typed')!.payload_keys, ['at', 'list'])
  })
})
