import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'event-contract'
const CONTRACTS = `import type { EventContracts } from '#heddle'
import { z } from 'zod'

const address = z.strictObject({ city: z.string(), zip: z.string().optional() })
export default {
  'user.created': z.object({ id: z.string(), age: z.number().optional(), nick: z.string().nullable(), address: address.optional() }),
  'user.loose': z.looseObject({ id: z.string() }),
  'user.any': z.record(z.string(), z.unknown()),
} satisfies EventContracts
`

test('a published or requested event without a contract is an error', async (t) => {
  const { findings } = await fixture(t, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin(
      'A',
      "await this.#bus.publish('user.gone', {})\nawait this.#bus.request('user.find', {})",
    ),
  })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:9 error the event 'user.gone' has no contract: declare it in domains/users/events.ts",
    "users/plugins/a.ts:10 error the event 'user.find' has no contract: declare it in domains/users/events.ts",
  ])
})

test("the contract of any domain counts, and the runtime's own events need none in the system domain", async (t) => {
  const body = "await this.#bus.publish('event.delivery.failed', {})\nawait this.#bus.publish('runtime.lane.died', {})"
  const { findings } = await fixture(t, {
    'users/events.ts': CONTRACTS,
    'audit/plugins/a.ts': plugin('A', "await this.#bus.publish('user.any', { x: 1 })"),
    'system/plugins/monitor.ts': plugin('Monitor', body),
    'users/plugins/forge.ts': plugin('Forge', "await this.#bus.publish('event.delivery.failed', {})"),
  })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/forge.ts:9 error the event 'event.delivery.failed' has no contract: declare it in domains/users/events.ts",
  ])
})

test('a payload literal that does not fit its contract is an error at the key', async (t) => {
  const body = `await this.#bus.publish('user.created', { id: 'u1' })
await this.#bus.publish('user.created', {
  id: 7,
  nick: null,
  mail: 'x',
})
await this.#bus.publish('user.created', { id: \`u\${1}\`, nick: undefined })
await this.#bus.publish('user.created', { id: 'u', nick: 'n', address: { town: 'x' } })
await this.#bus.publish('user.created', [])
await this.#bus.publish('user.loose', { other: 1 })`
  const { findings } = await fixture(t, { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:9 error the payload of 'user.created' lacks the required key 'nick'",
    "users/plugins/a.ts:11 error the payload of 'user.created' has a number for 'id', not a string",
    "users/plugins/a.ts:13 error the payload of 'user.created' has the unknown key 'mail'",
    "users/plugins/a.ts:15 error the payload of 'user.created' lacks the required key 'nick'",
    "users/plugins/a.ts:16 error the payload of 'user.created' has the unknown key 'address.town'",
    "users/plugins/a.ts:16 error the payload of 'user.created' lacks the required key 'address.city'",
    "users/plugins/a.ts:18 error the payload of 'user.loose' lacks the required key 'id'",
  ])
})

test('payloads that the source does not show whole are left alone', async (t) => {
  const body = `const payload = { wrong: true }
const more = { nick: 'n' }
await this.#bus.publish('user.created', payload)
await this.#bus.publish('user.created', { id: 'u', ...more })
await this.#bus.publish('user.created', { id: make(), nick: more.nick, age: await count() })
await this.#bus.publish('user.loose', { id: 'u', other: 1 })
await this.#bus.publish('user.created', ...args)`
  const { findings } = await fixture(t, { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) })
  assert.deepEqual(await findings(RULE), [])
})

test('schemas made by chaining are understood, and unknown ones take everything', async (t) => {
  const { findings } = await fixture(t, {
    'users/events.ts': `import * as zod from 'zod'
const NAME = 'b.extended'
const base = zod.object({ id: zod.uuid() })
const contracts = {
  'a.partial': base.partial(),
  [NAME]: base.extend({ at: zod.iso.datetime(), kind: zod.literal('x').default('x') }).strict(),
  'c.coerced': zod.object({ n: zod.coerce.number(), t: zod.string().transform(Number), u: zod.union([zod.string(), zod.number()]) }),
  'd.foreign': { '~standard': { version: 1, vendor: 'other', validate: (value) => ({ value }) } },
}
export default contracts
`,
    'users/plugins/a.ts': plugin(
      'A',
      `await this.#bus.publish('a.partial', {})
await this.#bus.publish('b.extended', { id: 'x' })
await this.#bus.publish('c.coerced', { n: '1', t: 'x', u: 1 })
await this.#bus.publish('d.foreign', { whatever: 1 })`,
    ),
  })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:10 error the payload of 'b.extended' lacks the required key 'at'",
  ])
})

test('a subscriber to an event that nobody publishes is a warning and leaves the report ok', async (t) => {
  const body = `this.#bus.subscribe('order.paid', () => {})
this.#bus.subscribe('event.delivery.failed', () => {})
this.#bus.subscribe('runtime.lane.died', () => {})
this.#bus.subscribe('user.any', () => {})
await this.#bus.publish('user.any', {})`
  const { findings, lint } = await fixture(t, { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:9 warning nobody publishes the event 'order.paid' subscribed to here",
  ])
  assert.equal((await lint()).ok, true)
})

test('two contracts of one event, and contracts that cannot be read, are told', async (t) => {
  const { findings } = await fixture(t, {
    'users/events.ts': CONTRACTS,
    'audit/events.ts': "import { z } from 'zod'\nexport default {\n  'user.any': z.object(),\n}\n",
    'broken/events.ts': 'export default { ...others }',
    'users/plugins/a.ts': plugin('A', "await this.#bus.publish('maybe.in.others', {})"),
  })
  assert.deepEqual(await findings(RULE), [
    'broken/events.ts:1 warning the contracts cannot be loaded: others is not defined. Its events are not checked',
    "users/events.ts:8 error the event 'user.any' has a contract already, in audit/events.ts:3",
  ])
})

test('names that functions hand on, that a branch chooses or a loop goes through are all checked', async (t) => {
  const body = `const emit = (name, payload) => this.#bus.publish(name, payload)
emit('user.loose', { id: 1 })
emit('user.handed', {})
await this.#send('user.sent', {})
await this.#bus.publish(busy ? 'user.busy' : 'user.loose', { id: 'x' })
for (const name of ['user.loop', 'user.any']) await this.#bus.publish(name, {})
await this.#bus.publish('user.created', { id: busy ? 'x' : 5, nick: null })`
  const { findings } = await fixture(t, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin('A', body).replace(/}\n$/, '  #send(a, b) { return this.#bus.publish(a, b) }\n}\n'),
  })
  const missing = (line: number, event: string) =>
    `users/plugins/a.ts:${line} error the event '${event}' has no contract: declare it in domains/users/events.ts`
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:10 error the payload of 'user.loose' has a number for 'id', not a string",
    missing(11, 'user.handed'),
    missing(12, 'user.sent'),
    missing(13, 'user.busy'),
    missing(14, 'user.loop'),
    "users/plugins/a.ts:15 error the payload of 'user.created' has a number for 'id', not a string",
  ])
})

test('what may replace a key of a payload is waited for, and a name and a payload that are both chosen are not paired', async (t) => {
  const body = `await this.#bus.publish('user.created', { id: 5, nick: 1, ...rest })
await this.#bus.publish(a ? 'user.created' : 'user.loose', a ? { id: 'x', nick: null } : { id: 'x', free: 1 })
await this.#bus.publish('user.loose', { ...rest, id: 5 })
let name = ''
name = compute()
await this.#bus.publish(name, {})`
  const { findings } = await fixture(t, { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) })
  assert.deepEqual(await findings(RULE), [
    "users/plugins/a.ts:11 error the payload of 'user.loose' has a number for 'id', not a string",
  ])
})

test('a subscriber is not reported while a name that is only known at run time may be its event', async (t) => {
  const body = `this.#bus.subscribe('order.paid', this.x)
this.#bus.subscribe('user.paid', this.x)
await this.#bus.publish(\`order.\${kind}\`, {})`
  const { findings, write } = await fixture(t, { 'a/plugins/a.ts': plugin('A', body) })
  const orphan = "a/plugins/a.ts:10 warning nobody publishes the event 'user.paid' subscribed to here"
  assert.deepEqual(await findings(RULE), [orphan])
  await write('b/plugins/b.ts', plugin('B', 'await this.#bus.publish(anything(), {})'))
  const blank = 'unless b/plugins/b.ts:9 does, where the name is only known at run time'
  assert.deepEqual(await findings(RULE), [`${orphan}, ${blank}`])
})
