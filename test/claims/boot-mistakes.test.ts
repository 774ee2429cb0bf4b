import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../support/folder.ts'
import { spawnHeddle, startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

interface Fault {
  source: string
  /** What the log says behind `Plugin <name> failed in boot: `, in this order. `DIR` is the folder of the plugins. */
  log: string[]
  /** What `/system/status` says; left out: the first line of the log. */
  status?: string
}

const withHttp = (line: string): string => `export default class extends Object {
  constructor({ http }) { super(); this.http = http }
  onBoot() {
    ${line}
  }
}`

/** By file. The class of each has the file's name. */
const FAULTS: Record<string, Fault> = {
  'no-default': {
    source: 'export const nothing = 1',
    log: ['DIR/no-default.ts must have a plugin as its default export: it has none, write `export default plugin('],
  },
  'by-name': {
    source: 'export class ByName {}',
    log: ['must have a plugin as its default export: it exports ByName by name, write `export default class ByName`'],
  },
  'function-by-name': {
    source: `import { plugin } from 'heddle'
export const named = plugin(() => {})`,
    log: ['must have a plugin as its default export: it exports named by name, write `export default plugin(…)`'],
  },
  'no-class': {
    source: 'export default () => {}',
    log: [
      'DIR/no-class.ts must have a plugin as its default export: it is a function, write `export default plugin(',
      '` or `export default class … extends Plugin`',
      'DIR/no-class.ts:1:1',
    ],
  },
  'no-tool': {
    source: `export default class NoTool {
  constructor({ http, schedular }) {}
}`,
    status: 'Missing tool: schedular',
    log: [
      'Missing tool: schedular',
      'DIR/no-tool.ts:2:',
      '2 | constructor({ http, schedular }) {}',
      'Fix: did you mean scheduler? Installed: auth, config, db, event_bus, http, logger, registry, ',
    ],
  },
  'no-slash': {
    source: withHttp("this.http.addEndpoint('users', 'GET', () => ({}))"),
    log: [
      'GET "users": the path must start with \'/\'',
      'DIR/no-slash.ts:4:15',
      "4 | this.http.addEndpoint('users', 'GET', () => ({}))",
      "Fix: write it from the root: '/users/:id'.",
    ],
  },
  braces: {
    source: withHttp("this.http.addEndpoint('/users/{id}', 'GET', () => ({}))"),
    log: [
      "GET \"/users/{id}\": '{id}' is no parameter here: write ':id'",
      'DIR/braces.ts:4:15',
      "Fix: a colon makes a parameter: '/users/:id'",
    ],
  },
  'two-wildcards': {
    source: withHttp("this.http.addEndpoint('/a/*/b/*', 'GET', () => ({}))"),
    log: ["'*' must be the whole last segment", 'DIR/two-wildcards.ts:4:15', 'Fix: one wildcard, at the end'],
  },
  'same-parameter': {
    source: withHttp("this.http.addEndpoint('/a/:id/b/:id', 'GET', () => ({}))"),
    log: ["the parameter ':id' stands there twice", 'DIR/same-parameter.ts:4:15', 'Fix: give each parameter a name'],
  },
  'no-handler': {
    source: withHttp("this.http.addEndpoint('/b', 'GET', this.shwo)"),
    log: ['GET "/b": the handler must be a function', 'DIR/no-handler.ts:4:15', 'this.shwo', 'Fix: hand over a method'],
  },
  'odd-method': {
    source: withHttp("this.http.addEndpoint('/c', 'FETCH', () => ({}))"),
    log: ['FETCH "/c": the method must be one of GET, POST,', 'DIR/odd-method.ts:4:15', "'FETCH'"],
  },
  'options-last': {
    source: `import { plugin } from 'heddle'
export default plugin(({ http }) => {
  http.get('/swapped', () => 0, { tags: ['swapped'] })
})`,
    log: [
      'GET "/swapped": the options, an object, stand before the handler: guards are one of them',
      'DIR/options-last.ts:3:8',
    ],
  },
  'second-here': {
    source: withHttp("this.http.addEndpoint('/good/:name', 'GET', () => ({}))"),
    log: [
      'GET /good/:name is registered already by a.Good',
      'DIR/second-here.ts:4:15',
      'Fix: give one of the two another path or another method, the other stands in DIR/good.ts.',
    ],
  },
  'broken-syntax': {
    source: `export default class BrokenSyntax {
  onBoot( { return 1 }
}`,
    status: 'DIR/broken-syntax.ts:2:',
    log: ['Syntax error: ', 'DIR/broken-syntax.ts:2:', '2 | onBoot( { return 1 }'],
  },
  // These throw a SyntaxError, and the file is sound.
  'parses-badly': {
    source: `const prices = JSON.parse('{ "tea": 1, }')
export default class ParsesBadly { prices = prices }`,
    status: 'DIR/parses-badly.ts:1:',
    log: ['double-quoted property name in JSON', 'DIR/parses-badly.ts:1:21', "1 | const prices = JSON.parse('{ "],
  },
  'reads-badly': {
    source: `export default class ReadsBadly {
  onBoot() { this.count = BigInt('many') }
}`,
    log: ['Cannot convert many to a BigInt', 'DIR/reads-badly.ts:2:27'],
  },
  'finds-badly': {
    source: `const kinds = new RegExp('[')
export default class FindsBadly { kinds = kinds }`,
    status: 'DIR/finds-badly.ts:1:',
    log: ['Invalid regular expression', 'DIR/finds-badly.ts:1:15'],
  },
  'no-file': {
    source: `import { price } from '../prise.ts'
export default class NoFile { onBoot() { price() } }`,
    status: 'DIR/no-file.ts:1:',
    log: [
      'prise.ts',
      'which DIR/no-file.ts imports',
      "1 | import { price } from '../prise.ts'",
      'Fix: did you mean ',
      'price.ts?',
    ],
  },
  'no-package': {
    source: `import { left } from '@nobody/has-this/part'
export default class NoPackage { onBoot() { left() } }`,
    status: 'DIR/no-package.ts:1:',
    log: ['@nobody/has-this', 'DIR/no-package.ts:1:', 'Fix: npm install @nobody/has-this, or correct its name.'],
  },
  'throws-at-top': {
    source: `const limit = Number('x')
if (Number.isNaN(limit)) throw new Error('the limit is no number')
export default class ThrowsAtTop {}`,
    status: 'DIR/throws-at-top.ts:2:',
    log: ['the limit is no number', 'DIR/throws-at-top.ts:2:', '2 | if (Number.isNaN(limit)) throw'],
  },
  'throws-in-constructor': {
    source: `export default class ThrowsInConstructor {
  constructor({ http }) {
    this.limit = http.nothing.at.all
  }
}`,
    log: ["Cannot read properties of undefined (reading 'at')", 'DIR/throws-in-constructor.ts:3:', '3 | this.limit ='],
  },
  'throws-in-boot': {
    source: `import { fail } from '../price.ts'
export default class ThrowsInBoot {
  async onBoot() {
    await fail()
  }
}`,
    log: ['no price today', 'price.ts:2:', "2 | export const fail = async () => { throw new Error('no price today') }"],
  },
  'rejects-as-function': {
    source: `import { plugin } from 'heddle'
export default plugin(async () => { throw new Error('no good') })`,
    log: ['no good', 'DIR/rejects-as-function.ts:2:'],
  },
  'no-parent': {
    source: `export default class NoParent {
  constructor({ http }) {
    super()
  }
}`,
    status: 'DIR/no-parent.ts:3:',
    log: [
      'DIR/no-parent.ts:3:',
      '3 | super()',
      "Fix: write `class … extends Plugin`, and import { Plugin } from 'heddle'.",
    ],
  },
  'no-super': {
    source: `import { Plugin } from '#heddle'
export default class NoSuper extends Plugin {
  constructor({ http }) { this.http = http }
}`,
    log: ['Must call super constructor', 'DIR/no-super.ts:3:', 'Fix: call super() first'],
  },
  'only-type': {
    source: `import type { Plugin } from '#heddle'
export default class OnlyType extends Plugin {}`,
    status: 'DIR/only-type.ts:2:',
    log: ['Plugin is not defined', '2 | export default class OnlyType', 'Fix: Plugin is imported as a type'],
  },
  'no-import': {
    source: 'export default class NoImport extends Plugin {}',
    status: 'DIR/no-import.ts:1:',
    log: ['Plugin is not defined', "Fix: import { Plugin } from 'heddle'."],
  },
  commonjs: {
    source: `class Commonjs { onBoot() {} }
module.exports = Commonjs`,
    log: ['it has module.exports instead, write `export default plugin(', 'DIR/commonjs.ts:1:1'],
  },
  'waits-in-constructor': {
    source: `export default class WaitsInConstructor {
  async constructor({ db }) {
    await db.query('SELECT 1')
  }
}`,
    status: 'DIR/waits-in-constructor.ts:2:',
    log: ['Syntax error: ', 'DIR/waits-in-constructor.ts:2:', 'Fix: move what has to wait into `async onBoot()`'],
  },
  circle: {
    source: `import { total } from '../total.ts'
export const RATE = 3
export default class Circle { total = total }`,
    status: 'a/total.ts:2:',
    log: [
      "Cannot access 'RATE' before initialization",
      'a/total.ts:2:',
      '2 | export const total = RATE * 2',
      'Fix: make RATE above its use; where files import each other (npm run lint:architecture shows them), move it into a file of its own that both import',
    ],
  },
  'long-circle': {
    source: `import type { Nothing } from '../total.ts'
import { Child } from '../child.ts'
export class Parent {}
export default class LongCircle { child = new Child() }`,
    status: 'a/child.ts:2:',
    log: ['a/child.ts:2:', '2 | export class Child extends Parent {}', 'Fix: make Parent above its use'],
  },
  'other-tool': {
    source: `export default class OtherTool { constructor({ database }) {} }`,
    status: 'Missing tool: database',
    log: ['Missing tool: database', 'DIR/other-tool.ts:1:', 'Fix: did you mean db? Installed: '],
  },
  'one-tool': {
    source: `export default class OneTool {
  constructor(http) { http.addEndpoint('/x', 'GET', () => ({})) }
}`,
    status: 'Missing tool: addEndpoint',
    log: [
      'Missing tool: addEndpoint',
      'DIR/one-tool.ts:2:',
      'Fix: the tools come in one object: plugin(({ http }) => …), or constructor({ http }: Tools)',
    ],
  },
  'one-tool-taken': {
    source: `import { plugin } from 'heddle'
export default plugin((http) => http.get('/x', () => ({})))`,
    log: [
      'Missing tool: get',
      'DIR/one-tool-taken.ts:2:',
      'Fix: the tools come in one object: plugin(({ http }) => …), or constructor({ http }: Tools)',
    ],
  },
  'as-in-express': {
    source: withHttp("this.http.head('/users', () => ({}))"),
    log: [
      'this.http.head is not a function',
      'DIR/as-in-express.ts:4:',
      "Fix: write http.addEndpoint('/path', 'HEAD', handler).",
    ],
  },
  'other-method': {
    source: `export default class OtherMethod {
  constructor({ event_bus }) { event_bus.on('a', () => {}) }
}`,
    log: [
      'event_bus.on is not a function',
      'DIR/other-method.ts:2:',
      'Fix: did you mean event_bus.subscribe? event_bus has publish, ',
    ],
  },
  swapped: {
    source: withHttp("this.http.addEndpoint('GET', '/d', () => ({}))"),
    log: ['DIR/swapped.ts:4:15', "Fix: the path comes first: addEndpoint('/users/:id', 'GET', handler)."],
  },
  'no-schema': {
    source: withHttp("this.http.addEndpoint('/e', 'POST', () => ({}), { body: { name: 'string' } })"),
    log: ['body must be a Standard Schema', 'DIR/no-schema.ts:4:15', 'Fix: write a schema, for example z.object('],
  },
  'misspelt-option': {
    source: withHttp("this.http.addEndpoint('/f', 'GET', () => ({}), { authValidater: () => null })"),
    log: [
      'GET "/f": there is no option authValidater',
      'DIR/misspelt-option.ts:4:15',
      'Fix: did you mean authValidator?',
    ],
  },
  'odd-cron': {
    source: `export default class OddCron {
  constructor({ scheduler }) { scheduler.cron('nightly', 'every day at 3', () => {}) }
}`,
    log: [
      'the cron expression "every day at 3" is not valid',
      'DIR/odd-cron.ts:2:',
      "Fix: five fields, minute hour day month weekday, in UTC: '0 3 * * *'",
    ],
  },
  'not-there': {
    source: `import { prise } from '../price.ts'
export default class NotThere {
  constructor({ http }) { http.addEndpoint('/price', 'GET', () => ({ price: prise() })) }
}`,
    status: "DIR/not-there.ts:1:10: The requested module '../price.ts' does not provide an export named 'prise'",
    log: [
      "The requested module '../price.ts' does not provide an export named 'prise'",
      'DIR/not-there.ts:1:10',
      "1 | import { prise } from '../price.ts'",
      'Fix: export prise there, correct the name, or write `import type` for a type.',
    ],
  },
  // What is no Error has no stack: the line that throws it is looked for.
  'throws-null': {
    source: 'export default class ThrowsNull {}\nthrow null',
    status: 'DIR/throws-null.ts:2:1: It threw null',
    log: ['It threw null', 'DIR/throws-null.ts:2:1', 'Fix: throw an Error, which has a line'],
  },
  'throws-text': {
    source: `export default class ThrowsText {
  onBoot() { throw 'no coffee left' }
}`,
    log: ['It threw no coffee left', 'DIR/throws-text.ts:2:14', 'Fix: throw an Error'],
  },
  'throws-object': {
    source: 'export default class ThrowsObject { onBoot() { const why = { code: 7 }; throw why } }',
    log: ['It threw {"code":7}', 'DIR/throws-object.ts, while it booted', 'Fix: throw an Error'],
  },
  'has-a-cause': {
    source: `export default class HasACause {
  onBoot() { throw new Error('The ledger did not open', { cause: new Error('no ledger.bin') }) }
}`,
    log: ['The ledger did not open: no ledger.bin', 'DIR/has-a-cause.ts:2:20'],
  },
  'gathers-errors': {
    source: `export default class GathersErrors {
  async onBoot() { await Promise.any(['one', 'two', 'two', 'four', 'five'].map((n) => Promise.reject(new Error(n)))) }
}`,
    log: ['All promises were rejected: one; two; and 2 more', 'DIR/gathers-errors.ts, while it booted'],
  },
  'rejects-in-boot': {
    source: `export default class RejectsInBoot {
  constructor({ db }) { this.db = db }
  onBoot() { return this.db.query('SELECT 1 FROM nowhere') }
}`,
    log: ['nowhere', 'DIR/rejects-in-boot.ts, while it booted'],
  },
}

test('each mistake that keeps a plugin from booting is logged with its file, what is wrong, and how to fix it', async (t) => {
  const files: Record<string, string> = {
    'a/price.ts':
      "export const price = () => 1\nexport const fail = async () => { throw new Error('no price today') }\n",
    'a/total.ts': "import { RATE } from './plugins/circle.ts'\nexport const total = RATE * 2\n",
    'a/child.ts': "import { Parent } from './middle.ts'\nexport class Child extends Parent {}\n",
    'a/middle.ts': "export { Parent } from './plugins/long-circle.ts'\n",
    'a/plugins/odd.ts': `export default class Odd {
  constructor({ http }) { this.http = http }
  onboot() { this.http.addEndpoint('/odd', 'GET', () => ({})) }
  onStock() { return 1 }
  other() { return this.onStock() }
}`,
    'a/plugins/good.ts': `export default class Good {
      constructor({ http, registry }) {
        http.addEndpoint('/good/:id', 'GET', () => ({}))
        http.addEndpoint('/dump', 'GET', () => registry.getSystemDump())
      } }`,
  }
  for (const [name, { source }] of Object.entries(FAULTS)) {
    files[`a/plugins/${name}.ts`] = source.replace('class extends', `class ${classOf(name)} extends`)
  }
  const domains = await folderOf(t, files)
  const heddle = await startHeddle(t, { domains: [domains], lanes: 1 })
  const { plugins } = await until(async () => {
    const { body } = await heddle.json('/dump')
    return body.plugins?.['a.Odd'] === undefined ? undefined : body
  }, 'the snapshot')
  assert.equal(plugins['a.Good'].status, 'OK')
  const shorten = (text: string): string => text.replaceAll(`${domains}/a/plugins`, 'DIR').replaceAll(`${domains}/`, '')
  for (const [name, { log, status }] of Object.entries(FAULTS)) {
    const plugin = `a.${classOf(name)}`
    const prefix = `Plugin ${plugin} failed in boot: `
    // On a machine that is busy a second lane boots beside the slow one, and tells the same.
    const told = new Set(heddle.logs.map(({ msg }) => msg).filter((msg) => msg.startsWith(prefix)))
    assert.equal(told.size, 1, `${plugin} is told in one way: ${JSON.stringify([...told])}`)
    const text = shorten([...told][0]!.slice(prefix.length))
    let from = 0
    for (const part of log) {
      const at = text.indexOf(part, from)
      assert.ok(at >= 0, `${plugin}: ${part}\nis not, or not there, in\n${text}`)
      from = at + part.length
    }
    assert.ok(text.split('\n').length <= 6, `${plugin} says it in few lines:\n${text}`)
    const shown = shorten(plugins[plugin].error)
    assert.ok(shown.startsWith(status ?? text.split('\n')[0]), `${plugin}: ${shown}`)
    assert.ok(!shown.includes('\n'), `${plugin}: ${shown}`)
  }
  assert.equal(plugins['a.NoTool'].error, 'Missing tool: schedular')

  const told = heddle.logs.filter(({ msg }) => msg.startsWith('Plugin a.Odd: ')).map(({ msg }) => shorten(msg))
  const warnings = [...new Set(told)]
  assert.equal(plugins['a.Odd'].status, 'OK')
  assert.deepEqual(warnings, [
    'Plugin a.Odd: Odd does not extend Plugin\n  DIR/odd.ts:1:16\n    1 | export default class Odd {\n                       ^\n' +
      "  Fix: write `export default class Odd extends Plugin`, with import { Plugin } from 'heddle'.",
    'Plugin a.Odd: Nothing calls Odd.onboot\n  DIR/odd.ts:3:3\n' +
      "    3 | onboot() { this.http.addEndpoint('/odd', 'GET', () => ({})) }\n        ^\n  Fix: did you mean onBoot?",
  ])
})

test('a folder of domains that does not exist ends the start at once, with the name that was meant', async (t) => {
  const root = await folderOf(t, { 'domains/a/events.ts': 'export default {}' })
  const { child, errors } = await spawnHeddle(t, { domains: [join(root, 'domain')], lanes: 1 })
  const [code, signal] = await once(child, 'close')
  assert.deepEqual([code, signal], [1, null])
  assert.match(errors.join(''), /DOMAINS_DIR: there is no folder \S+domain\. Fix: did you mean \S+domains\?/)
})

function classOf(file: string): string {
  return file.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())
}
