import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import { Application } from './application.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const say = (what: string): string => `module.exports = () => process.stdout.write(${JSON.stringify(what)})`

test('a module of the runtime or of a package is run as it was kept, until its file or the installation changes', (t) => {
  const application = new Application(t)
  application.program("require('./part.js')(); require('dependency')()")
  application.write('node_modules/heddle/dist/src/part.js', say('first '))
  application.write('node_modules/dependency/package.json', '{ "main": "one.js" }')
  application.write('node_modules/dependency/one.js', say('one'))
  application.write('node_modules/dependency/two.js', say('two'))
  const run = (): string => {
    const { stdout, stderr } = application.run()
    assert.equal(stderr, '')
    return stdout
  }
  assert.equal(run(), 'first one')

  const packed = join(application.kept, 'packs')
  for (const name of readdirSync(packed)) {
    const bytes = readFileSync(join(packed, name))
    writeFileSync(join(packed, name), bytes.toString('latin1').replaceAll('first', 'again'), 'latin1')
  }
  assert.equal(run(), 'again one', 'what is kept is what runs')

  application.write('node_modules/heddle/dist/src/part.js', say('second '))
  assert.equal(run(), 'second one')
  application.write('node_modules/dependency/package.json', '{ "main": "two.js" }')
  application.write('node_modules/.package-lock.json', '{}')
  assert.equal(run(), 'second two', 'npm has installed another version')

  for (const name of readdirSync(packed)) truncateSync(join(packed, name), 5000)
  assert.equal(run(), 'second two', 'a file that was not written to its end is no harm')
  for (const name of readdirSync(packed)) writeFileSync(join(packed, name), Buffer.alloc(5000))
  assert.equal(run(), 'second two')
})

/** More than are stripped one by one. */
const PARTS = 30

test('the first start of a checkout strips all that a service loads together', (t) => {
  const folder = temporaryFolder(t)
  cpSync(join(ROOT, 'src/preload'), join(folder, 'src/preload'), { recursive: true })
  cpSync(join(ROOT, 'src/preload.cjs'), join(folder, 'src/preload.cjs'))
  for (const name of ['node_modules', 'workers', 'domains', 'src/devtools']) mkdirSync(join(folder, name))
  for (const name of ['tsx', 'esbuild'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  const write = (path: string, text: string): void => writeFileSync(join(folder, path), text)
  write('package.json', '{ "type": "module" }')
  const parts = Array.from({ length: PARTS }, (_, n) => `part-${n}`)
  for (const part of parts) write(`src/${part}.ts`, `export const name: string = '${part}'`)
  write('src/not-loaded.ts', 'export const notLoaded: number = 1')
  write('src/devtools/tool.ts', 'export const tool: number = 1')
  write('src/main.ts', parts.map((part) => `import './${part}.ts'`).join('\n'))
  const args = ['--require', './src/preload.cjs', 'src/main.ts']
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  assert.deepEqual([status, stderr], [0, ''])
  const kept = join(folder, 'node_modules/.cache/heddle-code/stripped')
  const texts = readdirSync(kept).map((name) => readFileSync(join(kept, name), 'utf8'))
  assert.ok(texts.some((text) => text.includes('notLoaded')))
  assert.ok(!texts.some((text) => text.includes('tool = 1')), 'a tool is stripped when it is loaded')
})

test('kept code that somebody else could have written is not executed', (t) => {
  const application = new Application(t)
  application.program(`require('./part.js')()`)
  application.write('node_modules/heddle/dist/src/part.js', say('ours'))
  application.run()
  const plant = (folder: string): void => {
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), 'latin1').replaceAll('ours', 'evil')
      writeFileSync(join(folder, name), text, 'latin1')
    }
  }
  plant(join(application.kept, 'packs'))
  assert.equal(application.run().stdout, 'evil', 'what lies in the folder is executed')
  chmodSync(application.kept, 0o777)
  const elsewhere = application.run()
  assert.deepEqual(elsewhere, { stdout: 'ours', stderr: '' }, 'it is kept in the folder for temporary files')

  const temporary = join(application.temporary, `heddle-code-${process.geteuid!()}`)
  plant(join(temporary, 'packs'))
  assert.equal(application.run().stdout, 'evil')
  chmodSync(temporary, 0o777)
  const nowhere = application.run()
  assert.equal(nowhere.stdout, 'ours')
  assert.match(nowhere.stderr, /TranspilerCacheWarning: Compiled code is not kept.*others may write to/)
})

test('plain TypeScript needs no tsx, and what is more is left to it', (t) => {
  const application = new Application(t)
  const load = (path: string): void =>
    application.program(`
      require(${JSON.stringify(join(application.folder, path))})
      process.stdout.write(Object.keys(require.cache).some((path) => path.includes('/tsx/')) ? ' by tsx' : ' alone')`)
  application.write('domains/named.ts', "export const name: string = 'named'\n")
  application.write('domains/part.tsx', 'export const part = <T,>(value: T): T => value\n')
  application.write('domains/helper.js', "export { name } from './named.ts'\n")
  application.write('node_modules/modern/package.json', '{ "type": "module", "exports": { "import": "./index.js" } }')
  application.write('node_modules/modern/index.js', "export const modern = 'modern'\n")
  const print = (value: string): string => `process.stdout.write(String(${value}))\n`
  const cases: Record<string, [text: string, wanted: string]> = {
    'plain.ts': [`import { name } from './named.ts'\n${print('name')}`, 'named alone'],
    'lazy.ts': [`import('./named.ts').then(({ name }) => ${print('name')})`, 'alonenamed'],
    'without-ending.ts': [`import { name } from './named'\n${print('name')}`, 'named alone'],
    'compiled-ending.ts': [`import { name } from './named.js'\n${print('name')}`, 'named by tsx'],
    'javascript.ts': [`import { name } from './helper.js'\n${print('name')}`, 'named by tsx'],
    'jsx.ts': [`import { part } from './part.tsx'\n${print("part('part')")}`, 'part by tsx'],
    'modern.ts': [`import('modern').then(({ modern }) => ${print('modern')})`, 'alonemodern'],
  }
  for (const [file, [text, wanted]] of Object.entries(cases)) {
    application.write(`domains/${file}`, text)
    load(`domains/${file}`)
    assert.deepEqual(application.run(), { stdout: wanted, stderr: '' }, file)
  }
  assert.deepEqual(application.run({ NODE_V8_COVERAGE: join(application.temporary, 'coverage') }).stdout, 'alonemodern')

  application.write(
    'domains/decorated.ts',
    `class Each { @mark one = 1 }\nfunction mark(target: object, key: string) { ${print('key')} }\n`,
  )
  application.write('tsconfig.json', '{ "compilerOptions": { "experimentalDecorators": true } }')
  load('domains/decorated.ts')
  assert.deepEqual(application.run(), { stdout: 'one by tsx', stderr: '' })
})

test('a stack names the lines of the sources', (t) => {
  const application = new Application(t)
  const thrown =
    "interface Never {\n  there: boolean\n}\nexport function fail(): never {\n  throw new Error('wanted')\n}\n"
  application.write('domains/thrown.ts', thrown)
  application.write('domains/twice.tsx', thrown)
  for (const file of ['domains/thrown.ts', 'domains/twice.tsx']) {
    const path = join(application.folder, file)
    application.program(
      `try { require(${JSON.stringify(path)}).fail() } catch ({ stack }) { process.stdout.write(stack) }`,
    )
    for (const run of ['first', 'kept']) {
      assert.match(application.run().stdout, new RegExp(`at Object\\.fail \\(${path}:5:9\\)`), run)
    }
  }
  rmSync(application.kept, { recursive: true })
})

test('a file of the application that is not UTF-8 is refused with its line, whatever loads it', (t) => {
  const application = new Application(t)
  const code = `module.exports = () => {}\n// Müller`
  for (const [ending, text] of Object.entries({
    ts: code,
    cts: code,
    js: code,
    cjs: code,
    tsx: code,
    json: '{\n"name": "Müller" }',
  })) {
    const path = `domains/shop/part.${ending}`
    application.program(
      `try { require(${JSON.stringify(join(application.folder, path))}); console.log('loaded') } catch (error) { console.log(error.message) }`,
    )
    application.write(path, Buffer.from(text, 'latin1'))
    assert.match(
      application.run().stdout,
      /part\.\w+:2: the byte 0xFC \(ü in Latin-1\) in column \d+ is not UTF-8/,
      ending,
    )
    application.write(path, Buffer.from(`\ufeff${text}`, 'utf16le'))
    assert.match(application.run().stdout, /part\.\w+:1: this is UTF-16/, ending)
    application.write(path, `\ufeff${text}`)
    assert.equal(application.run().stdout, 'loaded', ending)
  }
})
