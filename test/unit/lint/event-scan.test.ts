import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin, scanEvents } from '../../support/lint-fixture.ts'

test('events are found under every name that the bus can have', async (t) => {
  const { domains } = await fixture(t, {
    'a/plugins/a.ts': `import { Plugin } from '#heddle'
const NAME = 'e.constant'
const EVENTS = { made: 'e.member' } as const
class Base extends Plugin {
  constructor(tools) { super(); this.inherited = tools.event_bus }
}
export default class Everything extends Base {
  static GONE = 'e.static'
  #deps; bus; tools; #publish
  constructor(tools) {
    super(tools)
    const { event_bus: renamed, ...rest } = tools
    const { logger } = rest
    this.tools = tools
    this.bus = renamed
    this.#deps = { log: logger, events: renamed }
    this.#publish = renamed.publish.bind(renamed)
    tools.event_bus.publish('e.direct', {})
    renamed.publish('e.renamed', {})
    tools['event_bus'].publish('e.bracket', {})
  }
  async onBoot() {
    const self = this
    const { publish, request: ask } = this.bus
    await this.bus?.publish('e.field', {})
    await this.tools.event_bus.publish(\`e.template\`, {})
    await this.#deps.events.publish(NAME, {})
    await self.#publish(EVENTS.made, {})
    await publish('e.destructured', {})
    await ask('e.request', {})
    await this.inherited.publish(Everything.GONE, {})
    await announce(this.bus)
    await this.#pass(this.bus, 'e.dynamic')
    const each = ['x'].map(async () => (await this.bus).publish('e.closure', {}))
    this.bus.subscribe('e.subscribed', this.on)
    await this.bus.publish(NAME + '.sum', {})
    await this.bus.publish(\`e.\${NAME}\`, {})
    await this.bus.publish(\`e.\${this.x}\`, {})
    let changing = 'e.changing'
    changing += '.more'
    await this.bus.publish(changing, {})
  }
  async #pass(bus, name) {
    await bus.publish('e.parameter', {})
    await bus.publish(name, {})
  }
}
async function announce(bus) { await bus.publish('e.function', {}) }
`,
  })
  const scanned = await scanEvents([domains])
  const emitted = scanned.filter(({ emitters }) => emitters.includes('a.Everything')).map(({ event }) => event)
  const found =
    'bracket closure constant constant.sum destructured direct dynamic e.constant field function member parameter renamed request static template'
  assert.deepEqual(
    emitted,
    found.split(' ').map((name) => `e.${name}`),
  )
  assert.deepEqual(
    scanned.filter(({ subscribers }) => subscribers.length > 0),
    [{ event: 'e.subscribed', emitters: [], subscribers: ['a.Everything'] }],
  )
})

test('what only looks like the bus is not taken for it', async (t) => {
  const { domains } = await fixture(t, {
    'a/plugins/a.ts': `import { Plugin } from '#heddle'
const redis = connect()
redis.publish('channel', 'x')
export default class A extends Plugin {
  bus
  constructor({ event_bus, state }) { super(); this.bus = event_bus; state.publish('no.tool', {}) }
  late(name = 'only.a.default') { this.bus.publish(name, {}) }
  run() { const event_bus = connect(); event_bus.publish('shadowed', {}); const text = "this.bus.publish('text', {})" }
  other() { return function () { this.bus.publish('other.this', {}) } }
}
// this.bus.publish('comment', {})
`,
  })
  assert.deepEqual(await scanEvents([domains]), [])
})

test('emitters and subscribers are told by plugin name, across domains and folders, sorted', async (t) => {
  const one = await fixture(t, {
    'users/plugins/create-user.ts': plugin('CreateUser', "await this.#bus.publish('user.created', {})"),
    'mail/plugins/welcome.ts': plugin('Welcome', "this.#bus.subscribe('user.created', this.on)"),
  })
  const two = await fixture(t, {
    'audit/plugins/record.ts': plugin('Record', "this.#bus.subscribe('user.created', this.on)"),
  })
  assert.deepEqual(await scanEvents([one.domains, two.domains]), [
    { event: 'user.created', emitters: ['users.CreateUser'], subscribers: ['audit.Record', 'mail.Welcome'] },
  ])
})

test('a helper of the domain counts for the plugins that import it', async (t) => {
  const { domains } = await fixture(t, {
    'users/announce.ts': `import type { EventBus } from '#heddle'
export const announce = (bus: EventBus) => bus.publish('user.announced', {})
`,
    'users/unused.ts': `import type { EventBus } from '#heddle'
export const never = (bus: EventBus) => bus.publish('user.never', {})
`,
    'users/steps.ts': "export { announce } from './announce.ts'\n",
    'users/plugins/a.ts': `import { announce } from '../steps.ts'\n${plugin('A', 'await announce(this.#bus)')}`,
    'users/plugins/b.ts': plugin('B', ''),
    'users/plugins/a.test.ts': plugin('ATest', "await this.#bus.publish('user.tested', {})"),
    'users/plugins/_draft.ts': plugin('Draft', "await this.#bus.publish('user.drafted', {})"),
  })
  assert.deepEqual(await scanEvents([domains]), [{ event: 'user.announced', emitters: ['users.A'], subscribers: [] }])
})

test('a syntax error in one file leaves the others, and becomes a finding', async (t) => {
  const { domains, findings } = await fixture(t, {
    'a/plugins/broken.ts': 'export default class Broken {\n  run( { \n',
    'a/plugins/fine.ts': plugin('Fine', "this.#bus.subscribe('user.created', this.on)"),
  })
  assert.deepEqual(
    (await scanEvents([domains])).map(({ event }) => event),
    ['user.created'],
  )
  const [finding] = await findings('parse')
  assert.match(finding ?? '', /^a\/plugins\/broken\.ts:\d+ error /)
})

test('domain.ts and app.ts emit what their hooks publish', async (t) => {
  const hook = (event: string, type = 'Tools') =>
    `import type { ${type.split('<')[0]} } from '#heddle'\nexport default ({ http, event_bus }: ${type}) => http.before(() => event_bus.publish('${event}', {}).then(() => undefined))\n`
  const { domains } = await fixture(t, {
    'app.ts': hook('visit.begun'),
    'shop/domain.ts': hook('shop.visited', 'ToolsIn<typeof app>'),
  })
  const events = await scanEvents([domains])
  assert.deepEqual(
    events.map(({ event, emitters }) => [event, emitters]),
    [
      ['shop.visited', ['shop.domain']],
      ['visit.begun', ['app']],
    ],
  )
})

test('a helper publishes when a call in the domain gives it the bus or a transaction, whatever type it wants, and other clients do not', async (t) => {
  const { domains, findings } = await fixture(t, {
    'a/plugins/a.ts': plugin(
      'Uses',
      `await announce(this.#bus); await announceTo({ bus: this.#bus }); await new Teller(this.#bus).tell(); await late()(this.#bus)
    await elsewhere(client); await this.#db.transaction((tx) => save(tx))
    typed(this.#bus, this.#bus, this.#bus)`,
    ).replace('\n', "\nimport { announce, announceTo, elsewhere, late, save, Teller, typed } from '../announce.ts'\n"),
    'a/announce.ts': `import type { Redis } from 'ioredis'
import mqtt from 'mqtt'
import type { Publisher } from './publisher.ts'
const NAME = 'helper.constant'
export async function announce(bus) { await bus.publish('helper.event', {}) }
export const announceTo = async ({ bus }) => { await bus.publish(NAME, {}) }
export class Teller {
  constructor(bus) { this.bus = bus }
  tell() { return this.bus.publish('helper.class', {}) }
}
export const typed = (bus: Publisher, any: any, shape: { publish(event: string, payload: object): unknown }) => {
  bus.publish('helper.typed', {})
  any.publish('helper.any', {})
  shape.publish('helper.shape', {})
}
export const late = () => (bus) => bus.publish('helper.late', {})
export async function save(tx) {
  await tx.execute('INSERT INTO rows VALUES (1)')
  await tx.publish('helper.saved', {})
}
export async function elsewhere(redis: Redis, channel: BroadcastChannel, other: import('x').Client) {
  const client = mqtt.connect('mqtt://broker')
  await redis.publish('foreign.redis', 'text')
  await client.publish('foreign.mqtt', 'text')
  await mqtt.publish('foreign.module', 'text')
  channel.publish('foreign.global', 'text')
  other.publish('foreign.import', 'text')
}
`,
    'a/publisher.ts': 'export interface Publisher { publish(event: string, payload: object): Promise<string> }',
  })
  const scanned = await scanEvents([domains])
  const found = ['any', 'class', 'constant', 'event', 'late', 'saved', 'shape', 'typed'].map((name) => `helper.${name}`)
  assert.deepEqual(
    scanned.filter(({ emitters }) => emitters.includes('a.Uses')).map(({ event }) => event),
    found,
  )
  // What the helpers publish is published apart from what the transaction writes.
  assert.deepEqual(
    (await findings('dual-write')).map((line) => line.split(' ')[0]),
    ['a/plugins/a.ts:10'],
  )
})
