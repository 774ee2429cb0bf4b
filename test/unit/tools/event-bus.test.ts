import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SubscribeOptions } from '../../../src/contracts/event-bus.ts'
import type { PublishOptions } from '../../../src/contracts/events.ts'
import EventBusTool from '../../../src/tools/event-bus/index.ts'
import { buildTool, owner } from '../../support/tool-runtime.ts'

function build(topology = {}) {
  const { tool, recorded } = buildTool(EventBusTool, { topology })
  const plugin = owner()
  return { ...tool.api(plugin), recorded, plugin }
}
const handler = () => null

test('publish names the plugin as emitter and resolves with the id', async () => {
  const { publish, recorded } = build()
  assert.equal(await publish('item.sold', { id: 1 }), 'evt_1')
  await publish('item.sold', { id: 2 }, { key: 'u2', delayMs: 0, ttlMs: undefined })
  assert.deepEqual(recorded.published, [
    ['users.CreateUser', 'item.sold', { id: 1 }, {}],
    ['users.CreateUser', 'item.sold', { id: 2 }, { key: 'u2', delayMs: 0 }],
  ])
})

test('publish at a point in time is a delay until then, none when it has passed', async () => {
  const { publish, recorded } = build()
  await publish('item.sold', {}, { at: new Date(Date.now() + 60_000), ttlMs: 5 })
  await publish('item.sold', {}, { at: new Date(0) })
  const [ahead, passed] = recorded.published.map((args) => args[3] as PublishOptions)
  assert.ok(ahead!.delayMs! > 50_000 && ahead!.delayMs! <= 60_000.5, `${ahead!.delayMs}`)
  assert.equal(ahead!.delayMs! % 1, 0.5, 'a date is told from a delay')
  assert.deepEqual(Object.keys(ahead!).sort(), ['delayMs', 'ttlMs'])
  assert.deepEqual(passed, { delayMs: 0 })
})

test('request waits five seconds unless told', async () => {
  const { request, recorded } = build()
  assert.deepEqual(await request('price.of', { sku: 'a' }), { reply: true })
  await request('price.of', {}, { timeoutMs: 20 })
  assert.deepEqual(
    recorded.requested.map((args) => args.at(-1)),
    [5000, 20],
  )
})

test('subscribe hands over the owner and all defaults, and can be ended', () => {
  const { subscribe, recorded, plugin } = build()
  const unsubscribe = subscribe('user.created', handler)
  subscribe('user.created', handler, { retries: 3, group: 'mail', broadcast: true })
  const defaults = { retries: 0, backoffMs: 500, timeoutMs: 30_000, broadcast: false }
  assert.deepEqual(recorded.subscriptions, [
    { owner: plugin, event: 'user.created', handler, options: defaults, shares: [] },
    {
      owner: plugin,
      event: 'user.created',
      handler,
      options: { ...defaults, retries: 3, group: 'mail', broadcast: true },
      shares: [],
    },
  ])
  unsubscribe()
  assert.equal(recorded.subscriptions.length, 1)
})

test('what is no event name is refused by all that take one', async () => {
  const { publish, request, subscribe, recorded } = build()
  const expected = { code: 'EVENT_NAME_INVALID' }
  for (const name of ['', 'a b', 'a/b', 'ü', '*', 'a\n', 'x'.repeat(201), undefined, 5, {}] as string[]) {
    await assert.rejects(publish(name, {}), expected)
    await assert.rejects(request(name, {}), expected)
    assert.throws(() => subscribe(name, handler), expected)
  }
  assert.deepEqual([recorded.published, recorded.requested, recorded.subscriptions], [[], [], []])
})

test('names may hold letters, digits, dots, dashes, colons and underscores', async () => {
  for (const name of ['a', 'item.sold', 'A-1_b:c', 'x'.repeat(200)]) await build().publish(name, {})
})

for (const options of [
  null,
  5,
  { key: '' },
  { key: 5 },
  { key: 'k'.repeat(513) },
  { delayMs: -1 },
  { delayMs: 1.5 },
  { delayMs: '5' },
  { delayMs: 2 ** 53 },
  { ttlMs: 0 },
  { at: 5 },
  { at: new Date(Number.NaN) },
  { at: new Date(), delayMs: 5 },
  { ttlMs: Number.NaN },
]) {
  test(`publish refuses the options ${String(JSON.stringify(options)).slice(0, 40)}`, async () => {
    await assert.rejects(build().publish('a', {}, options as PublishOptions), { code: 'EVENT_OPTIONS_INVALID' })
  })
}

for (const options of [
  null,
  { retries: -1 },
  { retries: 0.5 },
  { retries: Number.POSITIVE_INFINITY },
  { backoffMs: -1 },
  { timeoutMs: 0 },
  { timeoutMs: 2 ** 31 },
  { group: '' },
  { group: 'a b' },
  { broadcast: 'yes' },
  { transaction: 1 },
  { transaction: true, broadcast: true },
  { concurrency: 0 },
  { concurrency: 1.5 },
  { concurrency: Number.POSITIVE_INFINITY },
]) {
  test(`subscribe refuses the options ${JSON.stringify(options)}`, () => {
    assert.throws(() => build().subscribe('a', handler, options as SubscribeOptions), { code: 'EVENT_OPTIONS_INVALID' })
  })
}

test('request refuses a timeout out of range', async () => {
  await assert.rejects(build().request('a', {}, { timeoutMs: 0 }), { code: 'EVENT_OPTIONS_INVALID' })
})

test('what is called must be a function', () => {
  const { subscribe, addListener, addFailureListener } = build()
  for (const call of [
    () => subscribe('a', 1 as never),
    () => addListener({} as never),
    () => addFailureListener(null!),
  ]) {
    assert.throws(call, { code: 'EVENT_OPTIONS_INVALID' })
  }
})

test('listeners are added and removed', () => {
  const { addListener, addFailureListener, recorded } = build()
  const removals = [addListener(() => {}), addFailureListener(() => {})]
  assert.equal(recorded.listeners.size, 2)
  for (const remove of removals) remove()
  assert.equal(recorded.listeners.size, 0)
})

test('getSubscribers lists subscribed events only, as a copy', async () => {
  const entry = (subscribers: string[]) => ({ emitters: [], subscribers, fire_count: 0 })
  const topology = { 'user.created': entry(['mail.Welcome']), 'nobody.cares': entry([]) }
  const { getSubscribers } = build(topology)
  const subscribers = await getSubscribers()
  assert.deepEqual(subscribers, { 'user.created': ['mail.Welcome'] })
  subscribers['user.created']!.push('x')
  assert.deepEqual(topology['user.created'].subscribers, ['mail.Welcome'])
})
