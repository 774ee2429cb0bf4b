import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'

const [PRELOAD, MAIN] = ['preload.cjs', 'main.ts'].map((name) =>
  fileURLToPath(new URL(`../../../src/${name}`, import.meta.url)),
) as [string, string]

/** For Node 20. */
const OLD_ADDON = fileURLToPath(new URL('../../../node_modules/@uwsjs/linux-x64-20/uws.node', import.meta.url))

type Files = Record<string, string>
/** What stands above the plugin, what has to be `'ok'`, and which files are there besides. `*` is the domain. */
type Case = [above: string, value: string, files?: Files]

const TEXT = `export const x: string = 'ok'`
const part = (name: string, text = TEXT): Files => ({ [`domains/*/${name}`]: text })
const library = (name: string, manifest: object, text: string): Files => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ type: 'module', exports: './index.js', ...manifest }),
  [`node_modules/${name}/index.js`]: text,
})
const WAITS = library('that-waits', {}, `export const x = await Promise.resolve('ok')`)
const EMPTY_WASM = '\0asm\x01\0\0\0'

const LOADED: Record<string, Case> = {
  enum: [`enum E { A = 'ok' }`, 'E.A'],
  'const-enum': [`const enum E { A = 'ok' }`, 'E.A'],
  namespace: [`namespace N { export const x = 'ok' }`, 'N.x'],
  parameters: [`class C { constructor(readonly x: string) {} }`, `new C('ok').x`],
  accessor: [`class C { accessor x = 'ok' }`, 'new C().x'],
  using: [`let x = ''\n{ using y = { [Symbol.dispose]: () => { x = 'ok' } } }`, 'x'],
  types: [`import type { A } from './nowhere.ts'\nimport { type B } from '../part.ts'`, `'ok'`, part('part.ts')],
  'no-ending': [`import { x } from '../part'`, 'x', part('part.ts')],
  'js-for-ts': [`import { x } from '../part.js'`, 'x', part('part.ts')],
  js: [`import { x } from '../part.js'`, 'x', part('part.js', `export const x = 'ok'`)],
  mts: [`import { x } from '../part.mts'`, 'x', part('part.mts')],
  cts: [`import x = require('../part.cts')`, 'x', part('part.cts', `const x: string = 'ok'\nexport = x`)],
  cjs: [`import { x } from '../part.cjs'`, 'x', part('part.cjs', `exports.x = 'ok'`)],
  mjs: [`import { x } from '../part.mjs'`, 'x', part('part.mjs', `export const x = 'ok'`)],
  json: [`import data from '../data.json'`, 'data.x', part('data.json', '{ "x": "ok" }')],
  'json-with': [`import { x } from '../x.json' with { type: 'json' }`, 'x', part('x.json', '{ "x": "ok" }')],
  'hash-name': [`import { x } from '#shared'`, 'x', { 'shared.ts': TEXT }],
  'only-import': [
    `import { x } from 'for-import'`,
    'x',
    library('for-import', { exports: { import: './index.js' } }, `export const x = 'ok'`),
  ],
  'only-require': [
    `import { x } from 'for-require'`,
    'x',
    library('for-require', { type: 'commonjs', exports: { require: './index.js' } }, `exports.x = 'ok'`),
  ],
  'waits-later': ['', `(await import('that-waits')).x`, WAITS],
  'wasm-bytes': [
    `import { readFileSync } from 'node:fs'\nconst bytes = readFileSync(new URL('../x.wasm', import.meta.url))`,
    `new WebAssembly.Module(bytes) instanceof WebAssembly.Module ? 'ok' : ''`,
    part('x.wasm', EMPTY_WASM),
  ],
}

/** What differs by the `tsconfig.json` of an application. */
const WITHOUT: Record<string, Case> = {
  dynamic: [`const name = '../part.ts'`, '(await import(name)).x', part('part.ts')],
  decorators: [`const ok = (_: unknown, __: object) => () => 'ok'\nclass C { @ok x() {} }`, 'new C().x()'],
}
const OPTIONS = { experimentalDecorators: true, baseUrl: '.', paths: { '@lib/*': ['./lib/*'] }, jsx: 'react' }
const WITH: Record<string, Case> = {
  legacy: [
    `function ok(_: object, __: string, of: PropertyDescriptor) { of.value = () => 'ok' }
    const inject = (..._: unknown[]) => {}
    class C { constructor(@inject y: string) {} @ok x() {} }`,
    `new C('').x()`,
  ],
  paths: [`import { x } from '@lib/text'`, 'x', { 'lib/text.ts': TEXT }],
  jsx: [
    `import { x } from '../part.tsx'`,
    'x',
    part('part.tsx', `const React = { createElement: (name: string) => name }\nexport const x = <ok />`),
  ],
}

/** What is not loaded, and how the log begins and ends. */
const REFUSED: Record<string, [above: string, mistake: RegExp, fix: RegExp, files?: Files]> = {
  waits: [`const x = await null`, /^await at the top level/, /move it into onBoot/],
  'waits-in-package': [
    `import { x } from 'that-waits'\nconsole.log(x)`,
    /^'that-waits' has await at its top level/,
    /in `async onBoot\(\)`: this.lib = await import\('that-waits'\)/,
    WAITS,
  ],
  'script-refused': [
    `import built from 'built-here'\nconsole.log(built)`,
    /^'built-here' has no native part for this machine: its install script did not run/,
    /"allowScripts": \{ "built-here": true \} in package\.json, and npm rebuild built-here/,
    library('built-here', { type: 'commonjs' }, `module.exports = require('./build/Release/loom.node')`),
  ],
  'other-node': [
    `throw new Error(\`The module '/app/node_modules/@loom/native/build/Release/loom.node'
was compiled against a different Node.js version using
NODE_MODULE_VERSION 115. This version of Node.js requires
NODE_MODULE_VERSION 127. Please try re-compiling or re-installing\`)`,
    /^'@loom\/native' was installed for another Node: it has NODE_MODULE_VERSION 115, and this Node 127/,
    /npm rebuild @loom\/native, with the Node that runs the service/,
  ],
  ...(existsSync(OLD_ADDON) && {
    'not-registered': [
      `import old from '${OLD_ADDON}'\nconsole.log(old)`,
      /^'@uwsjs\/linux-x64-20' does not load here: it was installed for another Node, or knows one thread only/,
      /npm rebuild @uwsjs\/linux-x64-20; if that does not help, use it on the primary thread/,
    ] satisfies (typeof REFUSED)[string],
  }),
  'not-exported': [
    `import 'for-import/other'`,
    /^Package subpath '.\/other' is not defined by "exports"/,
    /a part that for-import names/,
  ],
  parameter: [
    `const inject = (..._: unknown[]) => {}\nclass C { constructor(@inject y: string) {} }`,
    /^Syntax error: Parameter decorators/,
    /"experimentalDecorators": true/,
  ],
  metadata: [
    `throw new Error('TypeInfo not known for "Mailer"')`,
    /^TypeInfo not known/,
    /name the type in the decorator/,
  ],
  wasm: [
    `import { a } from '../x.wasm'\na()`,
    /x\.wasm is no code/,
    /new WebAssembly\.Module/,
    part('x.wasm', EMPTY_WASM),
  ],
  source: [`import source x from '../x.wasm'`, /^Syntax error: Source phase/, /new WebAssembly\.Module/],
  deferred: [`import defer * as x from '../part.ts'`, /^Syntax error: Deferred/, /await import\(…\)/, part('part.ts')],
  text: [`import x from '../x.css'\nx()`, /x\.css is no code/, /read the bytes, readFileSync/, part('x.css', 'a {}')],
}

const pluginOf = (domain: string, above: string, value: string): string => `import { plugin } from 'heddle'
${above}
export default plugin(({ http }) => { http.get('/${domain}', async () => ({ data: ${value} })) })`

async function start(t: TestContext, cases: Record<string, Case>, more: Files): Promise<Heddle> {
  const files: Files = { 'package.json': '{ "type": "module", "imports": { "#shared": "./shared.ts" } }', ...more }
  for (const [domain, [above, value, besides = {}]] of Object.entries(cases)) {
    files[`domains/${domain}/plugins/try.ts`] = pluginOf(domain, above, value)
    for (const [path, text] of Object.entries(besides)) files[path.replace('*', domain)] = text
  }
  const project = await folderOf(t, files)
  const command = [process.execPath, '--require', PRELOAD, MAIN] as const
  return startHeddle(t, { project, command, domains: [join(project, 'domains')], lanes: 1 })
}

async function answerAll(heddle: Heddle, domains: readonly string[]): Promise<void> {
  const answers = await Promise.all(domains.map(async (domain) => [domain, (await heddle.json(`/${domain}`)).body]))
  assert.deepEqual(
    answers,
    domains.map((domain) => [domain, { data: 'ok' }]),
    JSON.stringify(heddle.logs, null, 1),
  )
}

test('a plugin may have and import what the page of modules lists', async (t) => {
  const refused = Object.entries(REFUSED).map(([name, [above, , , files]]): [string, Case] => [
    name,
    [above, '0', files],
  ])
  const loaded = { ...LOADED, ...WITHOUT }
  const plugins = Object.fromEntries(
    ['ts', 'mts', 'js', 'mjs', 'tsx'].map((ending) => [
      `domains/endings/plugins/${ending}.${ending}`,
      pluginOf(`ending-${ending}`, '', `'ok'`),
    ]),
  )
  for (const [ending, way] of Object.entries({ cjs: 'module.exports =', cts: 'export =' }))
    plugins[`domains/endings/plugins/${ending}.${ending}`] = `const { plugin } = require('heddle')
      ${way} plugin(({ http }) => { http.get('/ending-${ending}', () => ({ data: 'ok' })) })`
  const heddle = await start(t, { ...loaded, ...Object.fromEntries(refused) }, plugins)
  const endings = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs', 'tsx'].map((ending) => `ending-${ending}`)
  await answerAll(heddle, [...Object.keys(loaded), ...endings])
  for (const [name, [, mistake, fix]] of Object.entries(REFUSED)) {
    const line = heddle.logs.find(({ msg }) => msg.startsWith(`Plugin ${name}.Try failed in boot: `))
    const [first = '', ...rest] = (line?.msg ?? '').slice(`Plugin ${name}.Try failed in boot: `.length).split('\n')
    assert.match(first, mistake, name)
    assert.match(rest.at(-1) ?? '', /^ {2}Fix: /, name)
    assert.match(rest.at(-1) ?? '', fix, name)
  }
})

test('and so it may with a tsconfig.json that changes what files mean', async (t) => {
  const cases = { ...LOADED, ...WITH }
  const heddle = await start(t, cases, { 'tsconfig.json': JSON.stringify({ compilerOptions: OPTIONS }) })
  await answerAll(heddle, Object.keys(cases))
})
