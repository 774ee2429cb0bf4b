import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { folderOf, toolsWith } from '../../support/folder.ts'
import { type StartOptions, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { takenPort } from '../../support/port.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const SLOW = {
  'a/plugins/slow.ts': `export default class Slow {
    constructor({ http, logger }) {
      http.addEndpoint('/slow', 'GET', async () => {
        logger.info('begun')
        await new Promise((resolve) => setTimeout(resolve, 600))
        return { done: true }
      })
    } }`,
}

/** A start that must not succeed. */
async function failedStart(t: TestContext, options: StartOptions & { args?: string[] }) {
  const { child, errors, logs, directory } = await spawnHeddle(t, options)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text: errors.join(''), logs, directory }
}

test('SIGINT finishes what is in flight and exits 0; one that npm passes on is the one that the terminal has sent', async (t) => {
  const heddle = await startHeddle(t, {
    domains: [await folderOf(t, SLOW)],
    lanes: 1,
    env: { npm_command: 'run-script', npm_lifecycle_event: 'dev' },
  })
  const slow = heddle.json('/slow')
  await until(() => heddle.logs.some(({ msg }) => msg === 'begun'), 'the handler')
  const stopping = heddle.stop('SIGINT')
  await until(() => heddle.logs.some(({ msg }) => msg.includes('draining')), 'the drain')
  heddle.process.kill('SIGINT')
  assert.equal((await slow).status, 200)
  assert.equal(await stopping, 0)
})

test('a signal while it starts ends it with 0', async (t) => {
  const { child, logs } = await spawnHeddle(t, {
    lanes: 1,
    domains: [
      await folderOf(t, {
        'a/plugins/late.ts': `export default class Late { constructor({ logger }) { this.log = logger }
      async onBoot() { this.log.info('boots'); await new Promise((resolve) => setTimeout(resolve, 5000)) } }`,
      }),
    ],
  })
  await until(() => logs.some(({ msg }) => msg === 'boots'), 'a lane that boots')
  const startedMs = Date.now()
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'close'), [0, null])
  assert.ok(Date.now() - startedMs < 3000, `it took ${Date.now() - startedMs} ms`)
})

test('a port that is taken ends the start with 1, and says who has it and how to choose another', async (t) => {
  const port = await takenPort(t)
  const { code, text, directory } = await failedStart(t, {
    domains: [await folderOf(t, { ...SLOW, 'a/migrations/001_a.sql': 'CREATE TABLE a (id TEXT);' })],
    lanes: 1,
    env: { HTTP_PORT: String(port) },
  })
  assert.equal(code, 1)
  assert.equal(existsSync(join(directory, 'service.db')), false, 'no migration was applied')
  assert.match(text, new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port}: the port is taken by `))
  if (process.platform === 'linux') assert.match(text, new RegExp(`\\(process ${process.pid}\\)`))
  assert.match(text, new RegExp(`HTTP_PORT=${port + 1}`))
  assert.doesNotMatch(text, /^ {4}at /m, 'the message says all')
})

test('what stands among plugins and is no file ends the start instead of holding it up', async (t) => {
  const folder = await folderOf(t, SLOW)
  const pipe = join(folder, 'a', 'plugins/pipe.ts')
  execFileSync('mkfifo', [pipe])
  const { code, text } = await failedStart(t, { domains: [folder], lanes: 1 })
  assert.notEqual(code, 0)
  assert.match(text, /pipe\.ts is not a file/)
  rmSync(pipe)
  // What a plugin imports is loaded by another reader.
  execFileSync('mkfifo', [join(folder, 'a', 'pipe.ts')])
  writeFileSync(join(folder, 'a', 'plugins/piped.ts'), "import '../pipe.ts'\nexport default class Piped {}\n")
  const heddle = await startHeddle(t, { domains: [folder], lanes: 1 })
  assert.ok(heddle.logs.some(({ msg }) => /pipe\.ts is not a file/.test(msg)))
})

test('all faults of the environment are reported together, no secret is, and the process exits 78', async (t) => {
  const env = { HTTP_PORT: 'eighty', LANE_STALL_MS: '-1', LOG_FORMAT: 'xml', AUTH_SECRET_KEY: 'too short' }
  const { code, text } = await failedStart(t, { env })
  assert.equal(code, 78)
  for (const name of Object.keys(env)) assert.match(text, new RegExp(`^ {2}${name}: expected `, 'm'))
  assert.doesNotMatch(text, /too short/)
})

test('two folders with a tool of one name refuse the start and are both named', async (t) => {
  const tools = await toolsWith(t, { 'another-state/index.ts': `export default class { name = 'state' }` })
  const { code, text } = await failedStart(t, { domains: [await folderOf(t, {})], lanes: 1, env: { TOOLS_DIR: tools } })
  assert.equal(code, 1)
  assert.ok(text.includes(join(tools, 'another-state')) && text.includes(join(tools, 'memory-state')), text)
})

test('--boot-tool db migrates and exits 0, and 1 when it cannot', async (t) => {
  const good = await folderOf(t, { 'shop/migrations/001_items.sql': 'CREATE TABLE items (id TEXT PRIMARY KEY);' })
  // What other tools read may be missing or wrong: a pipeline has no secrets.
  const env = { AUTH_SECRET_KEY: '', HTTP_HOST: '0.0.0.0', HTTP_PORT: 'eighty', KV_PORT: 'none' }
  const migrated = await failedStart(t, { domains: [good], args: ['--boot-tool=db'], env })
  assert.deepEqual([migrated.code, migrated.text], [0, ''])
  assert.ok(!migrated.logs.some(({ msg }) => msg.startsWith('Serving on')))

  const bad = await folderOf(t, { 'shop/migrations/001_items.sql': 'CREATE TABEL items (id TEXT);' })
  const refused = await failedStart(t, { domains: [bad], args: ['--boot-tool', 'db'] })
  assert.equal(refused.code, 1)
  assert.match(refused.text, /001_items/)

  const unknown = await failedStart(t, { args: ['--boot-tool', 'telegraph'] })
  assert.equal(unknown.code, 1)
  assert.match(unknown.text, /Missing tool: telegraph/)
})

test('an unknown flag refuses the start with exit code 2, and the message says which was meant and which there are', async (t) => {
  const { code, text } = await failedStart(t, { args: ['--boot-tools', 'db'] })
  assert.equal(code, 2)
  assert.match(
    text,
    /^Unknown option '--boot-tools': was --boot-tool meant\?[\s\S]*Usage: npm start -- \[--boot-tool <tool>\]/,
  )
})

test('a migration that cannot be applied leaves the process serving but not ready, and no supervisor is told otherwise', async (t) => {
  const shop = await folderOf(t, {
    'shop/migrations/001_items.sql': 'CREATE TABEL items (id TEXT);',
    'shop/plugins/readiness.ts': `export default class Readiness {
      static thread = 'primary'
      constructor({ http, registry }) { http.addEndpoint('/ready', 'GET', () => registry.getReadiness()) } }`,
  })
  const heddle = await startHeddle(t, { domains: [shop], lanes: 1 })
  const told: unknown[] = []
  heddle.process.on('message', (message) => told.push(message))
  const { body } = await heddle.json('/ready')
  assert.equal(body.ready, false)
  assert.match(body.reasons.join(), /tool db did not boot: .*001_items/)
  await until(() => heddle.logs.find(({ msg }) => msg.startsWith('Not ready: ')), 'the log line')
  assert.deepEqual(told, [])
})

test('a lane knows the health of the process from its first request on, also when it has replaced another', async (t) => {
  const heddle = await startHeddle(t, { domains: [fixture('deployed')], lanes: 1 })
  const assertKnown = (body: { plugins: object; tools: object }): void => {
    assert.ok(Object.hasOwn(body.plugins, 'fleet.DumpHealth') && Object.hasOwn(body.tools, 'db'), JSON.stringify(body))
  }
  assertKnown((await heddle.json('/dump')).body)
  assert.equal((await heddle.fetch('/exit')).status, 500)
  const { body } = await until(async () => {
    const answer = await heddle.json('/dump')
    return answer.status === 200 ? answer : null
  }, 'the next lane')
  assertKnown(body)
})
