import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Payload } from '../../../src/contracts/events.ts'
import { loadEventContracts } from '../../../src/core/schemas/event-contracts.ts'
import EventBusTool from '../../../src/tools/event-bus/index.ts'
import { folderOf } from '../../support/folder.ts'
import { buildTool, owner } from '../../support/tool-runtime.ts'

const ZOD = JSON.stringify(fileURLToPath(import.meta.resolve('zod')))
const ORDERS = `
import { z } from ${ZOD}
export default {
  'order.placed': z.object({ id: z.string(), lines: z.array(z.object({ price: z.number() })), count: z.number().default(1) }),
  'order.strict': z.strictObject({ id: z.string() }),
  'order.slow': z.object({ id: z.string() }).refine(async ({ id }) => { await null; return id !== 'taken' }, { path: ['id'], message: 'is taken' }),
  'order.broken': z.object({}).refine(() => { throw new Error('no such table') }),
  'order.own': { '~standard': { version: 1, vendor: 'own', validate: (value) =>
    value.id === 1 ? { value: { changed: true } } : { issues: [{ message: 'must be 1', path: [{ key: 'id' }] }, { message: 'is wrong' }] } } },
  'order.sulking': { '~standard': { version: 1, vendor: 'own', validate: () => { throw new Error('not today') } } },
}
`

/** A lane's instance of the tool; `logs` is what the primary's instance has logged. */
async function build(t: TestContext, files: Record<string, string> = { 'orders/events.ts': ORDERS }) {
  const folder = await folderOf(t, files)
  const settings = { domainsDir: [folder] }
  const primary = buildTool(EventBusTool, { settings })
  const lane = buildTool(EventBusTool, { settings, primary: () => primary.tool })
  await lane.tool.boot()
  const { published, requested } = lane.recorded
  return { ...lane.tool.api(owner()), published, requested, primary, logs: primary.recorded.logs, folder }
}

async function refusal(publishing: Promise<unknown>): Promise<{ message: string; details: unknown }> {
  const error = await publishing.then(
    () => assert.fail('it was published'),
    (thrown) => thrown,
  )
  assert.equal(error.code, 'EVENT_CONTRACT', error.stack)
  return error
}

test('a payload that does not fit its contract is refused with the path of each fault, and goes nowhere', async (t) => {
  const { publish, request, published, requested, folder } = await build(t)
  const payload = { lines: [{ price: 1 }, { price: 'two' }] }
  const { message, details } = await refusal(publish('order.placed', payload))
  assert.deepEqual(details, [
    { path: 'id', message: 'Invalid input: expected string, received undefined' },
    { path: 'lines.1.price', message: 'Invalid input: expected number, received string' },
  ])
  assert.equal(
    message,
    `The payload of order.placed does not fit its contract in ${folder}/orders/events.ts: ` +
      'id: Invalid input: expected string, received undefined; lines.1.price: Invalid input: expected number, received string',
  )
  await refusal(publish('order.placed', null as unknown as Payload))
  await refusal(publish('order.strict', { id: 'o1', colour: 'red' }))
  await refusal(request('order.placed', payload))
  assert.deepEqual([published, requested], [[], []])
})

test('what fits is published as it was given, not as the schema would have it', async (t) => {
  const { publish, request, published, requested } = await build(t)
  const payload = { id: 'o1', lines: [], unknown: 'stays' }
  assert.equal(await publish('order.placed', payload, { key: 'o1' }), 'evt_1')
  await publish('order.own', { id: 1 })
  assert.deepEqual(published, [
    ['users.CreateUser', 'order.placed', payload, { key: 'o1' }],
    ['users.CreateUser', 'order.own', { id: 1 }, {}],
  ])
  assert.deepEqual(await request('order.placed', payload), { reply: true })
  assert.equal(requested.length, 1)
})

test('an event without a contract is published unchecked, names of inherited properties too', async (t) => {
  const { publish, published } = await build(t)
  for (const event of ['order.unheard', 'toString', '__proto__']) await publish(event, { anything: 1 })
  assert.equal(published.length, 3)
})

test('an event without a contract is warned of once, with its line and what to write; not in production', async (t) => {
  const { publish, request, subscribe, logs } = await build(t)
  const line = lineOfThis()
  await publish('order.unheard', {})
  await publish('order.unheard', {})
  await publish('order.placd', { id: 'o1' }).catch(() => {})
  await request('order.asked', {})
  subscribe('order.shipped', () => {})
  subscribe('order.slwo', () => {})
  subscribe('order.placed', () => {})
  const warnings = logs.map(({ level, message }) => `${level}: ${message}`)
  assert.equal(warnings.length, 4, warnings.join('\n'))
  assert.match(
    warnings[0]!,
    new RegExp(
      `^WARNING: The event 'order.unheard' is published by users.CreateUser at test/unit/events/contracts.test.ts:${line + 1}, and no contract declares it.* Fix: write 'order.unheard': z.object.* into domains/users/events.ts$`,
    ),
  )
  assert.match(warnings[1]!, /'order\.placd'.*Fix: did you mean 'order\.placed'\? Else write/)
  assert.match(warnings[2]!, /'order\.asked'/)
  assert.match(warnings[3]!, /users\.CreateUser subscribes to 'order\.slwo'.*Fix: did you mean 'order\.slow'\?/)

  const quiet = buildTool(EventBusTool, { settings: { domainsDir: [], nodeEnv: 'production' } })
  await quiet.tool.api(owner()).publish('order.unheard', {})
  assert.deepEqual(quiet.recorded.logs, [])
})

/** The line of its caller. */
function lineOfThis(): number {
  return Number(/contracts\.test\.ts:(\d+)/.exec(new Error('here').stack!.split('\n')[2]!)![1])
}

test('any Standard Schema can be a contract', async (t) => {
  const { publish } = await build(t)
  const { details } = await refusal(publish('order.own', { id: 2 }))
  assert.deepEqual(details, [
    { path: 'id', message: 'must be 1' },
    { path: '', message: 'is wrong' },
  ])
})

test('an async contract is waited for, and what is published is the payload as it was when it was given', async (t) => {
  const { publish, request, published, requested } = await build(t)
  const payload = { id: 'free' }
  const publishing = publish('order.slow', payload)
  payload.id = 'taken'
  await publishing
  assert.deepEqual(published, [['users.CreateUser', 'order.slow', { id: 'free' }, {}]])
  assert.deepEqual((await refusal(publish('order.slow', payload))).details, [{ path: 'id', message: 'is taken' }])
  await refusal(request('order.slow', payload))
  await request('order.slow', { id: 'free' })
  assert.deepEqual([published.length, requested.length], [1, 1])
})

test('a contract that throws lets nothing pass', async (t) => {
  const { publish, published } = await build(t)
  assert.match(
    (await refusal(publish('order.broken', {}))).message,
    /order\.broken in .*events\.ts threw: no such table$/,
  )
  assert.match((await refusal(publish('order.sulking', {}))).message, /order\.sulking in .* threw: not today$/)
  assert.deepEqual(published, [])
})

test('the faults of one payload are told up to a hundred', async (t) => {
  const { publish } = await build(t)
  const lines = Array.from({ length: 5000 }, () => ({ price: 'x' }))
  const { details, message } = await refusal(publish('order.placed', { id: 'o1', lines }))
  assert.equal((details as unknown[]).length, 101)
  assert.deepEqual((details as unknown[]).at(-1), { path: '', message: 'and 4900 more' })
  assert.ok(message.length < 1000 && message.endsWith('; and 4997 more'), message)
})

for (const [what, source, expected] of [
  ['a syntax error', 'export default {\n  a: = 1\n}', /events\.ts:2:\d+: ERROR: Unexpected "="/],
  ['no default export', 'export const contracts = {}', /it has no default export; write export default \{/],
  [
    'a default export that is no object',
    'export default () => {}',
    /its default export is not an object of schemas by event name/,
  ],
  [
    'a lone schema',
    `import { z } from ${ZOD}\nexport default z.object({})`,
    /its default export is not an object of schemas/,
  ],
  [
    'a value that is no schema',
    "export default { 'a.b': { type: 'string' } }",
    /the value for 'a\.b' is not a Standard Schema/,
  ],
  ['code that throws', "throw new Error('not loaded')", /not loaded/],
] as const) {
  test(`contracts with ${what} are a fault that names the file, and all others count`, async (t) => {
    const folder = await folderOf(t, { 'broken/events.ts': source, 'orders/events.ts': ORDERS })
    const { contracts, faults } = await loadEventContracts([folder])
    assert.equal(contracts.size, 6)
    assert.equal(faults.length, 1)
    const { file, message } = faults[0]!
    assert.equal(file, `${folder}/broken/events.ts`)
    assert.ok(message.startsWith(`${file}: `), message)
    assert.ok(message.endsWith('. Its events are not checked') && !message.includes('\n'), message)
    assert.match(message, expected)
  })
}

test('two contracts for one event are a fault that names both files, and the first one counts', async (t) => {
  const contract = (kind: string) => `import { z } from ${ZOD}\nexport default { 'a.b': z.object({ id: z.${kind}() }) }`
  const { publish, logs, published, folder } = await build(t, {
    'second/events.ts': contract('number'),
    'first/events.ts': contract('string'),
  })
  await publish('a.b', { id: 'text' })
  await refusal(publish('a.b', { id: 1 }))
  assert.equal(published.length, 1)
  assert.deepEqual(
    logs.map(({ level, message }) => [level, message]),
    [
      [
        'ERROR',
        `The event 'a.b' has two contracts, in ${folder}/first/events.ts and in ${folder}/second/events.ts: ` +
          'the first one counts. Declare it in the domain that publishes it',
      ],
    ],
  )
})

test('a fault that every lane finds is logged once, and again when it was mended and is back', async (t) => {
  const { primary, logs } = await build(t, { 'broken/events.ts': 'export const a = 1' })
  const { message } = logs[0]!
  const tell = (...messages: string[]) => primary.tool.serve('contract-faults', [messages])
  tell(message)
  tell(message, 'another')
  assert.equal(logs.length, 2)
  tell()
  tell(message)
  assert.deepEqual(
    logs.map((line) => line.message),
    [message, 'another', message],
  )
})

test('the primary loads the contracts with the first event, and keeps the order of what is published meanwhile', async (t) => {
  const folder = await folderOf(t, { 'orders/events.ts': ORDERS, 'broken/events.ts': 'export const a = 1' })
  const { tool, recorded } = buildTool(EventBusTool, { settings: { domainsDir: [folder] } })
  await tool.boot()
  const { publish, request } = tool.api(owner())
  const publishing = [publish('order.free', {}), publish('order.strict', { id: 'o1' }), publish('order.free', { n: 2 })]
  await refusal(publish('order.strict', { id: 1 }))
  await refusal(request('order.strict', {}))
  await Promise.all(publishing)
  assert.deepEqual(
    recorded.published.map(([, , payload]) => payload),
    [{}, { id: 'o1' }, { n: 2 }],
  )
  const told = recorded.logs.map(({ level, message }) => `${level}: ${message}`)
  assert.equal(told.length, 1, 'the lanes tell of faults')
  assert.match(told[0]!, /^WARNING: The event 'order.free' is published by users.CreateUser/)
})

test('a folder of domains that cannot be read is a fault, and nothing is checked', async () => {
  const { contracts, faults } = await loadEventContracts([`/${'x'.repeat(300)}`])
  assert.equal(contracts.size, 0)
  assert.match(faults[0]!.message, /^The event contracts in \/x+ cannot be read: ENAMETOOLONG/)
})
