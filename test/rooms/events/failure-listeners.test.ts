import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const WATCH = `import { threadId } from 'node:worker_threads'
export default class Watch {
  constructor({ event_bus, http, logger }) {
    let order = []
    const say = (text) => order.push(text)
    event_bus.addFailureListener(({ event, subscriber, attempts, error }) => {
      say('told')
      logger.info('told', { event, subscriber, attempts, error, thread: threadId })
    })
    const report = (event) => setTimeout(() => logger.info('order', { event, order, thread: threadId }), 200)
    event_bus.subscribe('fails.at-once', function fails(_, { event }) {
      order = []
      queueMicrotask(() => say('microtask'))
      setImmediate(() => say('immediate'))
      report(event)
      throw new Error('no')
    }, { retries: 0 })
    event_bus.subscribe('fails.later', async function failsLater(_, { event, attempt }) {
      order = []
      if (attempt === 2) report(event)
      await null
      setImmediate(() => say('immediate'))
      throw new Error('not now')
    }, { retries: 1, backoffMs: 1 })
    http.addEndpoint('/publish/:event', 'POST', async ({ event }) => ({ id: await event_bus.publish(event, {}) }))
  }
}`

test('failure listeners of the lane that had the last attempt hear of it before the failure leaves the lane, and every lane once', {
  timeout: 60_000,
}, async (t) => {
  const folder = await folderOf(t, { 'a/plugins/watch.ts': WATCH })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  const logged = (text: string, event: string) =>
    heddle.logs.filter((line) => line.msg === text && line.event === event)
  const cases = { 'fails.at-once': ['told', 'microtask', 'immediate'], 'fails.later': ['told', 'immediate'] }
  for (const [event, expected] of Object.entries(cases)) {
    await heddle.json(`/publish/${event}`, { method: 'POST' })
    const [line] = await until(() => {
      const lines = logged('order', event)
      return lines.length > 0 ? lines : undefined
    }, event)
    assert.deepEqual(line!.order, expected)
    await until(() => logged('told', event).length >= 2, 'the other lane')
    await new Promise((resolve) => setTimeout(resolve, 300))
    const told = logged('told', event)
    assert.equal(told.length, 2, 'each lane is told once')
    assert.equal(new Set(told.map(({ thread }) => thread)).size, 2)
    const [first, second] = told.map(({ subscriber, attempts, error }) => ({ subscriber, attempts, error }))
    assert.deepEqual(first, second, 'both hear the same')
    assert.equal(first!.subscriber, 'a.Watch')
    assert.equal(first!.attempts, event === 'fails.later' ? 2 : 1)
  }
  assert.equal(await heddle.stop(), 0)
})
