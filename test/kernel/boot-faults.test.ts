import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../support/folder.ts'
import { startHeddle } from '../support/heddle.ts'

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
    log: ['DIR/no-default.ts must have a class as its default export: it has none, write `export default class'],
  },
  'by-name': {
    source: 'export class ByName {}',
    log: ['must have a class as its default export: it exports ByName by name, write `export default class ByName`'],
  },
  'no-class': {
    source: 'export default () => {}',
    log: ['DIR/no-class.ts must have a class as its default export: it is a function', 'DIR/no-class.ts:1:1'],
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
  'rejects-in-boot': {
    source: `export default class RejectsInBoot {
  constructor({ db }) { this.db = db }
  onBoot() { return this.db.query('SELECT 1 FROM nowhere') }
}`,
    log: ['nowhere', 'DIR/rejects-in-boot.ts, in its onBoot'],
  },
}

test('each mistake that keeps a plugin from booting is logged with its file, what is wrong, and how to fix it', async (t) => {
  const files: Record<string, string> = {
    'a/price.ts':
      "export const price = () => 1\nexport const fail = async () => { throw new Error('no price today') }\n",
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
  const { plugins } = (await heddle.json('/dump')).body
  assert.equal(plugins['a.Good'].status, 'OK')
  for (const [name, { log, status }] of Object.entries(FAULTS)) {
    const plugin = `a.${classOf(name)}`
    const prefix = `Plugin ${plugin} failed in boot: `
    const lines = heddle.logs.filter(({ msg }) => msg.startsWith(prefix))
    assert.equal(lines.length, 1, `${plugin} is told once: ${JSON.stringify(heddle.logs.map(({ msg }) => msg))}`)
    const text = lines[0]!.msg.slice(prefix.length).replaceAll(`${domains}/a/plugins`, 'DIR')
    let from = 0
    for (const part of log) {
      const at = text.indexOf(part, from)
      assert.ok(at >= 0, `${plugin}: ${part}\nis not, or not there, in\n${text}`)
      from = at + part.length
    }
    assert.ok(text.split('\n').length <= 6, `${plugin} says it in few lines:\n${text}`)
    const shown = plugins[plugin].error.replaceAll(`${domains}/a/plugins`, 'DIR')
    assert.ok(shown.startsWith(status ?? text.split('\n')[0]), `${plugin}: ${shown}`)
    assert.ok(!shown.includes('\n'), `${plugin}: ${shown}`)
  }
  assert.equal(plugins['a.NoTool'].error, 'Missing tool: schedular')
})

function classOf(file: string): string {
  return file.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())
}
