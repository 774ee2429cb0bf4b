import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin, scanEvents } from '../../support/lint-fixture.ts'

const Z = "import { z } from 'zod'\n"

test('names of events that stand in another file of the domain are known, however they are exported', async (t) => {
  const { domains } = await fixture(t, {
    'a/names.ts': `export const PLACED = 'e.placed'
export const EVENTS = { shipped: 'e.shipped', inner: { paid: 'e.paid' } } as const
const internal = 'e.renamed'
export { internal as RENAMED }
export default 'e.default'
`,
    'a/index.ts':
      "export * from './names.ts'\nexport * as all from './names.ts'\nexport { PLACED as AGAIN } from './names.ts'\n",
    'a/plugins/a.ts': `import FALLBACK, { EVENTS, PLACED as P, RENAMED } from '../names.ts'
import * as names from '../names.ts'
import { AGAIN, all } from '../index.ts'
${plugin(
  'A',
  [
    'P',
    'EVENTS.shipped',
    'EVENTS.inner.paid',
    'RENAMED',
    'FALLBACK',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source of a plugin
    '`${names.PLACED}.namespace`',
    "all.EVENTS.shipped + '.all'",
    "AGAIN + '.again'",
  ]
    .map((name) => `await this.#bus.publish(${name}, {})`)
    .join('\n'),
)}`,
  })
  const rest = ['e.paid', 'e.placed', 'e.placed.again', 'e.placed.namespace', 'e.renamed', 'e.shipped', 'e.shipped.all']
  assert.deepEqual(
    (await scanEvents([domains])).map(({ event }) => event),
    ['e.default', ...rest],
  )
})

test('files that import each other in a circle, and themselves, are read all the same', async (t) => {
  const { domains } = await fixture(t, {
    'a/x.ts': "import { Y } from './y.ts'\nexport const X = 'e.x'\nexport const alsoY = Y\n",
    'a/y.ts': "import { X } from './x.ts'\nexport * from './x.ts'\nexport const Y = 'e.y'\nexport const alsoX = X\n",
    'a/self.ts': "export * as me from './self.ts'\nexport const SELF = 'e.self'\n",
    'a/plugins/a.ts': `import { X } from '../x.ts'\nimport { Y } from '../y.ts'\nimport { SELF } from '../self.ts'
${plugin('A', 'for (const name of [X, Y, SELF]) await this.#bus.publish(name, {})')}`,
    'a/plugins/b.ts':
      'class A extends B {}\nclass B extends A { run() { this.bus.publish("e.never", {}) } }\nexport default A\n',
  })
  const events = (await scanEvents([domains])).map(({ event }) => event)
  assert.deepEqual(events, ['e.self', 'e.x', 'e.y'])
})

test('tools are followed through base classes and types of other files', async (t) => {
  const { domains } = await fixture(t, {
    'a/base.ts': `import { Plugin, type Tools } from '#heddle'
export abstract class Base extends Plugin {
  protected bus
  constructor({ event_bus }: Tools) { super(); this.bus = event_bus }
}
`,
    'a/deps.ts': `import type { EventBus, Tools } from '#heddle'
import type * as heddle from '#heddle'
export interface Deps extends Pick<Tools, 'logger'> { bus: EventBus; inner: { also: Tools['event_bus'] } }
export interface Loop extends Loop { self: Loop; bus: heddle.EventBus }
export type Publish = EventBus['publish']
`,
    'a/steps.ts': `import type { Deps, Loop, Publish } from './deps.ts'
export const one = ({ bus, inner }: Deps) => { bus.publish('e.interface', {}); inner.also.publish('e.nested', {}) }
export function two(loop: Loop) { loop.self.bus.publish('e.loop', {}) }
export const three = (publish: Publish) => publish('e.method', {})
export const four = (bus: import('#heddle').EventBus) => bus.publish('e.import', {})
export const five = (a: { bus: Deps['bus'] }) => a.bus.publish('e.literal', {})
`,
    'a/plugins/a.ts': `import { Base } from '../base.ts'
import '../steps.ts'
export default class A extends Base {
  onBoot() { return this.bus.publish('e.inherited', {}) }
}
`,
  })
  assert.deepEqual(
    (await scanEvents([domains])).map(({ event }) => event),
    ['e.import', 'e.inherited', 'e.interface', 'e.literal', 'e.loop', 'e.method', 'e.nested'],
  )
})

test('functions and methods of other files that hand their arguments on to a tool are seen where they are called', async (t) => {
  const { lint } = await fixture(t, {
    'a/events.ts': `${Z}export default { 'a.known': z.object({ id: z.string() }) }\n`,
    'a/base.ts': `import { type Http, Plugin, type Tools } from '#heddle'
export class Base extends Plugin {
  tools; bus; db
  constructor(tools: Tools) { super(); this.tools = tools; this.bus = tools.event_bus; this.db = tools.db }
  protected emit(name: string, payload: object) { return this.bus.publish(name, payload) }
  protected rows(sql: string) { return this.db.query(sql) }
}
export const show = (http: Http, path: string) => http.addEndpoint(path, 'GET', () => ({}))
`,
    'a/plugins/a.ts': `import { Base, show } from '../base.ts'
export default class A extends Base {
  onBoot() {
    this.emit('a.known', { id: 5 })
    this.emit('a.gone', {})
    this.rows('SELECT * FROM strangers')
    show(this.tools.http, '/a/:id')
    show(this.tools.http, '/a/:other')
  }
}
`,
    'b/migrations/001_b.sql': 'CREATE TABLE strangers (id TEXT);\n',
  })
  assert.deepEqual(
    (await lint()).findings.map(({ rule, line }) => `${line} ${rule}`),
    ['4 event-contract', '5 event-contract', '6 table-ownership', '8 route-collision'],
  )
})
