import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { SseClient } from '../../support/sse-client.ts'
import { startSystem } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

interface Letter {
  id: string
  event: string
  [field: string]: unknown
}

const lettersOf = async (heddle: Heddle, event: string): Promise<Letter[]> =>
  (await heddle.json('/system/dead-letters')).body.filter((letter: Letter) => letter.event === event)

test('a subscriber that fails', async (t) => {
  const heddle = await startSystem(t)
  const events = await SseClient.open(t, heddle, '/system/events/stream')
  const logs = await SseClient.open(t, heddle, '/system/logs/stream')
  const { body } = await heddle.post(
    '/probe/publish',
    { event: 'probe.work', payload: { token: 'secret-value' } },
    { 'x-request-id': 'the-request' },
  )
  const failedId = body.data.id
  const isReport = ({ event }: { event: string }): boolean => event === 'event.delivery.failed'

  await t.test('causes event.delivery.failed, as a child of the event, with its request', async () => {
    const report = await events.frame(isReport, 'the report of the failure')
    assert.equal(report.parent_id, failedId)
    assert.equal(report.request_id, 'the-request')
    assert.equal(report.emitter, 'system.MonitorDeliveries')
    assert.deepEqual(report.payload_keys, ['event', 'event_id', 'subscriber', 'error', 'attempts'])
    assert.deepEqual(report.subscribers, ['probe.FailAtFailures'])

    const { body: roots } = await heddle.json('/system/traces/tree')
    const root = roots.find(({ id }: { id: string }) => id === failedId)
    assert.equal(root.event, 'probe.work')
    assert.deepEqual(
      root.children.map(({ id, event, children }: Letter) => ({ id, event, children })),
      [{ id: report.id, event: 'event.delivery.failed', children: [] }],
    )
  })

  await t.test('causes an ERROR in the log', async () => {
    const entry = await logs.frame(({ level }) => level === 'ERROR', 'the entry')
    assert.equal(entry.identity, 'system.MonitorDeliveries')
    assert.equal(entry.message, 'probe.FailWork failed to handle probe.work: no hands')
  })

  await t.test('leaves a dead letter without payload values', async () => {
    const letters = await until(async () => {
      const found = await lettersOf(heddle, 'probe.work')
      return found.length > 0 ? found : null
    }, 'the dead letter')
    const { id, timestamp } = letters[0]!
    assert.deepEqual(letters, [
      {
        id,
        event: 'probe.work',
        event_id: failedId,
        subscriber: 'probe.FailWork',
        error: 'no hands',
        attempts: 2,
        payload_keys: ['token'],
        timestamp,
        request_id: 'the-request',
      },
    ])
    assert.ok(!JSON.stringify((await heddle.json('/system/dead-letters')).body).includes('secret-value'))
  })

  await t.test('gets a replayed letter, and nobody else does', async () => {
    const [letter] = await lettersOf(heddle, 'probe.work')
    await until(async () => (await heddle.json('/probe/counts')).body.working === 1, 'the other subscriber')
    assert.deepEqual((await heddle.json('/probe/counts')).body, { failing: 2, working: 1 })
    await heddle.post('/probe/mend')

    const { status, body: answer } = await heddle.post(`/system/dead-letters/${letter!.id}/replay`)
    assert.equal(status, 200)
    assert.deepEqual(answer, { success: true, data: { id: letter!.id } })
    await until(async () => (await heddle.json('/probe/counts')).body.failing === 3, 'the replay')
    assert.equal((await heddle.json('/probe/counts')).body.working, 1)
    assert.deepEqual(await lettersOf(heddle, 'probe.work'), [])
    assert.equal((await heddle.post(`/system/dead-letters/${letter!.id}/replay`)).status, 404)
  })

  await t.test('at event.delivery.failed itself is logged and kept, but causes no further one', async () => {
    const { body: doomed } = await heddle.post('/probe/publish', { event: 'probe.doomed', payload: {} })
    await logs.frame(
      ({ level, message }) => level === 'ERROR' && message.includes('failed to handle event.delivery.failed'),
      'the entry of the failure at the failure',
    )
    await until(async () => (await lettersOf(heddle, 'event.delivery.failed')).length === 1, 'its dead letter')
    // Published last: an event that the guard had let through would come before this one.
    const { body: marker } = await heddle.post('/probe/publish', { event: 'probe.marker', payload: {} })
    await events.frame(({ id }) => id === marker.data.id, 'the marker')
    const reports = events.frames.filter(isReport)
    assert.deepEqual(
      reports.map(({ parent_id }) => parent_id),
      [failedId, doomed.data.id],
    )
  })

  await t.test('a letter whose subscriber has left is kept, and its replay answered with 409', async () => {
    await heddle.post('/probe/publish', { event: 'probe.once', payload: {} })
    const letters = await until(async () => {
      const found = await lettersOf(heddle, 'probe.once')
      return found.length > 0 ? found : null
    }, 'the dead letter')
    const { status, body: answer } = await heddle.post(`/system/dead-letters/${letters[0]!.id}/replay`)
    assert.equal(status, 409)
    assert.deepEqual(answer, {
      success: false,
      error: 'probe.LeaveBus does not subscribe to probe.once any more',
    })
    assert.equal((await lettersOf(heddle, 'probe.once')).length, 1)
  })

  await t.test('letters are found, edited and replayed together', async () => {
    const list = async (query: string) => (await heddle.json(`/system/dead-letters?${query}`)).body
    const [letter] = await list('event=probe.once&error=')
    assert.deepEqual(await list('event=probe.once&error=something%20else'), [])
    const put = (id: string, payload: unknown) =>
      heddle.json(`/system/dead-letters/${id}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ payload }),
      })
    assert.equal((await put(letter.id, 'text')).status, 422)
    assert.equal((await put('dl_0', {})).status, 404)
    assert.deepEqual((await put(letter.id, { colour: 'a secret red' })).body, {
      success: true,
      data: { id: letter.id },
    })
    const [edited] = await list('event=probe.once')
    assert.deepEqual([edited.payload_keys, edited.original_keys], [['colour'], []])
    assert.ok(!JSON.stringify(edited).includes('a secret red'))

    const none = await heddle.post('/system/dead-letters/replay', { event: 'probe.once' })
    assert.deepEqual(none.body, { success: true, data: { replayed: 0 } }, 'nobody subscribes to it any more')
    assert.equal((await heddle.post('/system/dead-letters/replay', { limit: 0 })).status, 422)
    await events.frame(({ event }) => event === 'runtime.operator.acted', 'who did it')
    const [told] = await list('event=probe.work&replayed=true')
    assert.equal(told.replay.outcome, 'done')
  })

  await t.test('a dead letter can be deleted, once', async () => {
    const [letter] = await lettersOf(heddle, 'probe.once')
    const path = `/system/dead-letters/${letter!.id}`
    const first = await heddle.json(path, { method: 'DELETE' })
    assert.deepEqual([first.status, first.body], [200, { success: true, data: { id: letter!.id } }])
    const second = await heddle.json(path, { method: 'DELETE' })
    assert.deepEqual(
      [second.status, second.body],
      [404, { success: false, error: `There is no dead letter ${letter!.id}` }],
    )
    assert.deepEqual(await lettersOf(heddle, 'probe.once'), [])
  })
})
