import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertFindings, fixture, plugin } from '../../support/lint-fixture.ts'

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

const missing = (event: string): string =>
  `error the event '${event}' has no contract: declare it in domains/users/events.ts`
const payload = (event: string, fault: string): string => `error the payload of '${event}' ${fault}`

test('a published or requested event without a contract is an error', (t) =>
  assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin(
      'A',
      `await this.#bus.publish('user.gone', {}) //! ${missing('user.gone')}
await this.#bus.request('user.find', {}) //! ${missing('user.find')}`,
    ),
  }))

test("the contract of any domain counts, and the runtime's own events need none in the system domain", (t) =>
  assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS,
    'audit/plugins/a.ts': plugin('A', "await this.#bus.publish('user.any', { x: 1 })"),
    'system/plugins/monitor.ts': plugin(
      'Monitor',
      "await this.#bus.publish('event.delivery.failed', {})\nawait this.#bus.publish('runtime.lane.died', {})",
    ),
    'users/plugins/forge.ts': plugin(
      'Forge',
      `await this.#bus.publish('event.delivery.failed', {}) //! ${missing('event.delivery.failed')}`,
    ),
  }))

test('a payload literal that does not fit its contract is an error at the key', (t) =>
  assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin(
      'A',
      `await this.#bus.publish('user.created', { id: 'u1' }) //! ${payload('user.created', "lacks the required key 'nick'")}
await this.#bus.publish('user.created', {
  id: 7, //! ${payload('user.created', "has a number for 'id', not a string")}
  nick: null,
  mail: 'x', //! ${payload('user.created', "has the unknown key 'mail'")}
})
await this.#bus.publish('user.created', { id: \`u\${1}\`, nick: undefined }) //! ${payload('user.created', "lacks the required key 'nick'")}
await this.#bus.publish('user.created', { id: 'u', nick: 'n', address: { town: 'x' } }) //! ${payload('user.created', "has the unknown key 'address.town'")} //! ${payload('user.created', "lacks the required key 'address.city'")}
await this.#bus.publish('user.created', [])
await this.#bus.publish('user.loose', { other: 1 }) //! ${payload('user.loose', "lacks the required key 'id'")}`,
    ),
  }))

test('payloads that the source does not show whole are left alone', (t) =>
  assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin(
      'A',
      `const payload = { wrong: true }
const more = { nick: 'n' }
await this.#bus.publish('user.created', payload)
await this.#bus.publish('user.created', { id: 'u', ...more })
await this.#bus.publish('user.created', { id: make(), nick: more.nick, age: await count() })
await this.#bus.publish('user.loose', { id: 'u', other: 1 })
await this.#bus.publish('user.created', ...args)`,
    ),
  }))

test('schemas made by chaining are understood, and unknown ones take everything', (t) =>
  assertFindings(t, RULE, {
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
await this.#bus.publish('b.extended', { id: 'x' }) //! ${payload('b.extended', "lacks the required key 'at'")}
await this.#bus.publish('c.coerced', { n: '1', t: 'x', u: 1 })
await this.#bus.publish('d.foreign', { whatever: 1 })`,
    ),
  }))

test('a subscriber to an event that nobody publishes is a warning and leaves the report ok', async (t) => {
  const orphan = "warning nobody publishes the event 'order.paid' subscribed to here"
  const body = `this.#bus.subscribe('order.paid', () => {}) //! ${orphan}
this.#bus.subscribe('event.delivery.failed', () => {})
this.#bus.subscribe('runtime.lane.died', () => {})
this.#bus.subscribe('user.any', () => {})
await this.#bus.publish('user.any', {})`
  const files = { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) }
  await assertFindings(t, RULE, files)
  assert.equal((await (await fixture(t, files)).lint()).ok, true)
})

test('two contracts of one event, and contracts that cannot be read, are told', (t) => {
  const twice = "//! error the event 'user.any' has a contract already, in audit/events.ts:3"
  const unread = '//! warning the contracts cannot be loaded: others is not defined. Its events are not checked'
  return assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS.replace(/'user\.any'.*/, `$& ${twice}`),
    'audit/events.ts': "import { z } from 'zod'\nexport default {\n  'user.any': z.object(),\n}\n",
    'broken/events.ts': `export default { ...others } ${unread}`,
    'users/plugins/a.ts': plugin('A', "await this.#bus.publish('maybe.in.others', {})"),
  })
})

const NUMBER = "has a number for 'id', not a string"

test('names that functions hand on, that a branch chooses or a loop goes through are all checked', (t) => {
  const body = `const emit = (name, payload) => this.#bus.publish(name, payload)
emit('user.loose', { id: 1 }) //! ${payload('user.loose', NUMBER)}
emit('user.handed', {}) //! ${missing('user.handed')}
await this.#send('user.sent', {}) //! ${missing('user.sent')}
await this.#bus.publish(busy ? 'user.busy' : 'user.loose', { id: 'x' }) //! ${missing('user.busy')}
for (const name of ['user.loop', 'user.any']) await this.#bus.publish(name, {}) //! ${missing('user.loop')}
await this.#bus.publish('user.created', { id: busy ? 'x' : 5, nick: null }) //! ${payload('user.created', NUMBER)}`
  return assertFindings(t, RULE, {
    'users/events.ts': CONTRACTS,
    'users/plugins/a.ts': plugin('A', body).replace(/}\n$/, '  #send(a, b) { return this.#bus.publish(a, b) }\n}\n'),
  })
})

test('what may replace a key of a payload is waited for, and a name and a payload that are both chosen are not paired', (t) => {
  const body = `await this.#bus.publish('user.created', { id: 5, nick: 1, ...rest })
await this.#bus.publish(a ? 'user.created' : 'user.loose', a ? { id: 'x', nick: null } : { id: 'x', free: 1 })
await this.#bus.publish('user.loose', { ...rest, id: 5 }) //! ${payload('user.loose', NUMBER)}
let name = ''
name = compute()
await this.#bus.publish(name, {})`
  return assertFindings(t, RULE, { 'users/events.ts': CONTRACTS, 'users/plugins/a.ts': plugin('A', body) })
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
