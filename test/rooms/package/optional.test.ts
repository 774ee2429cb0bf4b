import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OPTIONAL_PACKAGES } from '../../../src/core/modules/optional-package.ts'
import { until } from '../../support/until.ts'
import { end, type Installed, install, run, type Served, serve, sharedPackage } from './packed.ts'

const OWN = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
const BIN = fileURLToPath(new URL('../../../node_modules/.bin', import.meta.url))
/** What the packed file may have, whoever adds to it. */
const MAX_FILES = 1200
const EXIT_CONFIG = 78
const EXIT_USAGE = 2

/** What a message has to end with. */
const commandFor = (names: readonly string[]): string =>
  `not installed: npm install ${names.map((name) => `${name}@${OWN.peerDependencies[name]}`).join(' ')}`

/** Takes a span of its own, when it is asked to. */
const TRACED = `import { Plugin, type Tools } from 'heddle'

export default class Trace extends Plugin {
  constructor({ http, telemetry }: Tools) {
    super()
    http.addEndpoint('/traced', 'GET', () => ({ isTraced: telemetry.getTracer('hello') !== undefined }))
  }
}
`

let packed: Installed
before(async () => {
  packed = await sharedPackage()
})

describe('the packed file', () => {
  test('has what runs, and the types that an application sees', async () => {
    const { output } = await run('tar', ['-tzf', packed.first], packed.folder)
    const files = output.trim().split('\n')
    assert.ok(files.length <= MAX_FILES, `${files.length} files`)
    assert.deepEqual(
      files.filter((file) => file.endsWith('/package.json')),
      ['package/package.json'],
    )
  })

  test('publint finds nothing', async () => {
    const { code, output } = await run(join(BIN, 'publint'), [packed.first, '--strict'], packed.folder)
    assert.equal(code, 0, output)
    assert.match(output, /All good!/)
  })

  test('attw finds nothing, as ES modules and CommonJS see it', async () => {
    const args = [packed.first, '--profile', 'node16', '--no-color', '--no-emoji']
    const { code, output } = await run(join(BIN, 'attw'), args, packed.folder)
    assert.equal(code, 0, output)
  })
})

describe('an application that has installed none of what it may', () => {
  let app: string
  const heddle = (args: string[], env: Record<string, string> = {}) =>
    run(join(app, 'node_modules/.bin/heddle'), args, app, { HTTP_PORT: '0', LANES: '1', ...env })
  const DATABASE_URL = 'postgres://nobody@127.0.0.1:1/none'

  before(async () => {
    app = join(packed.folder, 'bare-app')
    const program = join(packed.bare, 'node_modules/.bin/heddle')
    const { code, output } = await run(program, ['create', 'bare-app'], packed.folder)
    assert.equal(code, 0, output)
    await install(app, packed.bare)
    mkdirSync(join(app, 'domains/hello/plugins'), { recursive: true })
    writeFileSync(join(app, 'domains/hello/plugins/trace.ts'), TRACED)
  })

  const postgres = { TOOLS: 'postgres', DATABASE_URL }
  const refusals: [
    command: string,
    env: Record<string, string>,
    code: number,
    lacks: keyof typeof OPTIONAL_PACKAGES,
  ][] = [
    ['start', postgres, EXIT_CONFIG, 'postgres'],
    ['dev', postgres, EXIT_CONFIG, 'postgres'],
    ['migrate status', postgres, EXIT_USAGE, 'postgres'],
    ['db types', postgres, EXIT_USAGE, 'postgres'],
    ['start', { TOOLS: 'redis-state' }, EXIT_CONFIG, 'redis'],
    ['start', { EVENT_BUS_DRIVER: 'keyvalue_streams' }, EXIT_CONFIG, 'redis'],
    ['start', { OTEL_ENABLED: 'true' }, EXIT_CONFIG, 'opentelemetry'],
    ['lint', {}, EXIT_USAGE, 'lint'],
    ['agents', {}, EXIT_USAGE, 'lint'],
  ]
  for (const [command, env, code, lacks] of refusals) {
    test(`heddle ${command} lacks ${lacks}${Object.keys(env).map((name) => ` (${name})`)}: it ends with ${code}, and says the one command that installs it`, async () => {
      const outcome = await heddle(command.split(' '), env)
      assert.equal(outcome.code, code, outcome.output)
      assert.ok(outcome.output.includes(commandFor(OPTIONAL_PACKAGES[lacks])), outcome.output)
    })
  }

  test('the checks: one command installs all that they need', async () => {
    const { code, output } = await heddle(['check'])
    assert.equal(code, EXIT_USAGE)
    const names = ['typescript', '@biomejs/biome', 'oxc-parser'].map(
      (name) => `${name}@${OWN.devDependencies[name] ?? OWN.peerDependencies[name]}`,
    )
    assert.ok(output.includes(`npm install --save-dev ${names.join(' ')}`), output)
  })

  test('its own test passes, and what is scaffolded in it', async () => {
    const made = await heddle(['new', 'domain', 'orders'])
    assert.equal(made.code, 0, made.output)
    const tested = await heddle(['test'])
    assert.equal(tested.code, 0, tested.output)
  })

  describe('serves', () => {
    let served: Served
    before(async () => {
      served = await serve(app, ['dev'])
    })
    after(() => end(served))
    const get = async (path: string) => {
      const response = await fetch(served.url + path)
      return { status: response.status, text: await response.text() }
    }

    test('its routes, and the pages with what these load', async () => {
      assert.equal((await get('/hello/world')).status, 200)
      for (const file of ['', '/lit-html.js', '/uplot.js', '/uplot.css']) {
        assert.equal((await get(`/system/dashboard${file}`)).status, 200, file)
      }
      assert.match((await get('/system/dashboard/uplot.js')).text, /export\s*\{/)
      assert.equal((await get('/system/docs/lit-html.js')).status, 200)
      assert.equal((await get('/system/events')).status, 200, 'without what sources would show besides')
    })

    test('the lint page says what it lacks', async () => {
      const { status, text } = await get('/system/lint')
      assert.equal(status, 501)
      assert.ok(text.includes(commandFor(OPTIONAL_PACKAGES.lint)), text)
    })

    test('so does the page for assistants', async () => {
      const response = await fetch(`${served.url}/system/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      })
      const text = await response.text()
      assert.equal(response.status, 501, text)
      assert.ok(text.includes(commandFor(OPTIONAL_PACKAGES.assistants)), text)
    })

    test('a plugin that makes spans of its own gets an error that says so', async () => {
      assert.equal((await get('/traced')).status, 500)
      await until(() => served.output().includes(commandFor(['@opentelemetry/api'])), 'the line of the log')
    })
  })

  test('a stack of the runtime names lines of its TypeScript sources', async () => {
    const preload = join(app, 'node_modules/heddle/dist/src/preload.cjs')
    const code = "try { require('heddle').networkOf() } catch (error) { console.log(error.stack) }"
    const { output } = await run(process.execPath, ['--require', preload, '-e', code], app)
    assert.match(output, /heddle\/src\/core\/http\/network\.ts:\d+:\d+/)
  })

  test('create writes down what is said to be used, and takes the packed file along', async () => {
    const tool = join(packed.folder, 'of-a-file')
    mkdirSync(tool)
    await install(tool, packed.bare)
    const lock = join(packed.bare, 'node_modules/.package-lock.json')
    writeFileSync(lock, JSON.stringify({ packages: { 'node_modules/heddle': { resolved: `file:${packed.first}` } } }))
    const program = join(packed.bare, 'node_modules/.bin/heddle')
    const made = await run(program, ['create', 'all', '--with', 'postgres,redis', '--with', 'checks'], packed.folder)
    assert.equal(made.code, 0, made.output)
    const read = (file: string) => readFileSync(join(packed.folder, 'all', file), 'utf8')
    const { dependencies, devDependencies } = JSON.parse(read('package.json'))
    const name = packed.first.split('/').at(-1)!
    assert.deepEqual(dependencies, {
      heddle: `file:${name}`,
      ioredis: OWN.peerDependencies.ioredis,
      pg: OWN.peerDependencies.pg,
      zod: OWN.dependencies.zod,
    })
    assert.deepEqual(Object.keys(devDependencies), ['@biomejs/biome', '@types/node', 'oxc-parser', 'typescript'])
    assert.ok(existsSync(join(packed.folder, 'all', name)))
    assert.match(read('.env.example'), /# DATABASE_URL=postgres:/)
    assert.match(read('.github/workflows/ci.yml'), /npm run check/)
    const wrong = await run(program, ['create', 'other', '--with', 'postgras'], packed.folder)
    assert.equal(wrong.code, EXIT_USAGE)
    assert.match(wrong.output, /was postgres meant\?/)
  })
})

test('the repository has all that is optional, in a version that applications are told to install', () => {
  for (const name of Object.values(OPTIONAL_PACKAGES).flat()) {
    assert.ok(`${OWN.optionalDependencies[name]}.`.startsWith(`${OWN.peerDependencies[name]}.`), name)
    assert.ok(OWN.peerDependenciesMeta[name].optional, name)
  }
})
