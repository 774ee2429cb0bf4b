import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const PLUGIN = `
import { execFileSync } from 'node:child_process'
import { inspect } from 'node:util'
import { plugin } from 'heddle'
import { key } from 'at-load'
import { ask } from '@scope/later'

export default plugin(({ http }) => {
  http.get('/package', () => ({ key: ask('LATER_KEY') ?? null }))
  http.get('/timer', () => new Promise((resolve) => ask.soon('TIMER_KEY', () => resolve({}))))
  http.get('/own', () => {
    const { OWN_KEY, PATH } = process.env
    return { own: OWN_KEY ?? null, path: PATH !== undefined, has: 'HAS_KEY' in process.env, key: key ?? null }
  })
  http.get('/secret', () => ({ key: ask('DATABASE_URL') ?? null, file: ask('KV_PASSWORD_FILE') ?? null }))
  http.get('/copy', () => {
    const copies = [{ ...process.env }, structuredClone(process.env), JSON.parse(JSON.stringify(process.env))]
    process.env.NUMBER = 5
    const number = process.env.NUMBER
    delete process.env.NUMBER
    Object.hasOwn(process.env, 'COPIED_KEY')
    return {
      copied: copies.some((copy) => 'COPIED_KEY' in copy),
      child: execFileSync('env', { encoding: 'utf8' }).includes('PATH='),
      number,
      gone: process.env.NUMBER === undefined,
      text: inspect(process.env),
      unset: process.env.NOBODY_HAS_IT === undefined,
    }
  })
})
`

const application = (t: TestContext): Promise<string> =>
  folderOf(t, {
    'domains/ask/plugins/ask-model.ts': PLUGIN,
    'node_modules/at-load/package.json': '{"name":"at-load","version":"1.0.0","main":"lib/index.js"}',
    'node_modules/at-load/lib/index.js': 'exports.key = process.env.LOAD_KEY',
    'node_modules/@scope/later/package.json': '{"name":"@scope/later","version":"1.0.0"}',
    'node_modules/@scope/later/index.js': `
      exports.ask = (name) => process.env[name]
      exports.ask.soon = (name, done) => setTimeout(() => { exports.ask(name); done() }, 1)`,
  })

const SET = Object.fromEntries(
  ['LOAD', 'LATER', 'TIMER', 'OWN', 'HAS', 'COPIED'].map((name) => [`${name}_KEY`, `value-of-${name}`]),
)

const PATHS = ['/package', '/timer', '/own', '/secret', '/copy']

const told = ({ logs }: Heddle): string[] => logs.map(({ msg }) => msg).filter((msg) => / asked /.test(msg))

async function started(t: TestContext, env: Record<string, string> = {}) {
  const folder = await application(t)
  const heddle = await startHeddle(t, {
    domains: [join(folder, 'domains'), SYSTEM_ROUTES],
    env: { ...SET, DATABASE_URL: 'postgres://u:known-to-nobody@localhost/x', ...env },
  })
  return { heddle, folder }
}

test('in development who asks for a variable that lanes do not see is named, once, and what to do', async (t) => {
  const { heddle, folder } = await started(t)
  // Quick requests go to one lane, and the other has the same to say.
  for (const path of [...PATHS, ...PATHS]) await heddle.json(path)
  const lines = [
    '`at-load` (in `ask-model.ts`) asked for `LOAD_KEY`, which lanes do not see: add it to `LANE_ENV`',
    '`@scope/later` (in `ask-model.ts`) asked for `LATER_KEY`, which lanes do not see: add it to `LANE_ENV`',
    '`@scope/later` (in `ask-model.ts`) asked for `TIMER_KEY`, which lanes do not see: add it to `LANE_ENV`',
    "`ask-model.ts` asked `process.env` for `OWN_KEY`, which lanes do not see: read it with `config.get('OWN_KEY')`, or add it to `LANE_ENV`",
    "`ask-model.ts` asked `process.env` for `HAS_KEY`, which lanes do not see: read it with `config.get('HAS_KEY')`, or add it to `LANE_ENV`",
    '`@scope/later` (in `ask-model.ts`) asked for `DATABASE_URL`, a secret of the runtime, which no lane sees: use the tool that has it, or read a variable of another name with `config.get`',
  ]
  await until(() => told(heddle).length >= lines.length, 'all lines')
  assert.deepEqual(told(heddle).sort(), lines.sort())
  const { identity, level } = heddle.logs.find(({ msg }) => msg.includes('LATER_KEY'))!
  assert.deepEqual([identity, level], ['ask.AskModel', 40])
  const values = new RegExp(Object.values(SET).join('|'))
  assert.doesNotMatch(JSON.stringify(heddle.logs), values)
  assert.doesNotMatch(JSON.stringify(heddle.logs), /known-to-nobody/)

  writeFileSync(join(folder, 'domains/ask/plugins/ask-model.ts'), `${PLUGIN}// again`)
  heddle.process.kill('SIGHUP')
  await until(() => heddle.logs.some(({ msg }) => msg.startsWith('Reloaded')), 'the reload')
  for (const path of PATHS) await heddle.json(path)
  assert.deepEqual(told(heddle).sort(), lines, 'new lanes do not say it again')
})

test('`process.env` is what it was: copies have what lanes see, and a text is what is written to it', async (t) => {
  const { heddle } = await started(t)
  const { body } = await heddle.json('/copy')
  assert.deepEqual(
    { ...body, text: '' },
    { copied: false, child: true, number: '5', gone: true, text: '', unset: true },
  )
  assert.match(body.text, /^\{\n(?: {2}\w+: '.*',?\n)+\}$/)
  assert.deepEqual(
    told(heddle).filter((line) => !line.includes('LOAD_KEY')),
    [],
  )
  const { body: own } = await heddle.json('/own')
  assert.deepEqual(own, { own: null, path: true, has: false, key: null })
})

test('what LANE_ENV names is there, and in production nobody listens', async (t) => {
  const { heddle } = await started(t, { LANE_ENV: 'LATER_*', NODE_ENV: 'production' })
  for (const path of PATHS) await heddle.json(path)
  assert.equal((await heddle.json('/package')).body.key, 'value-of-LATER')
  assert.deepEqual(told(heddle), [])
})

test('an error that names one says it, in production too, where a plugin fails and where a lane ends', async (t) => {
  const fails = (how: string) => `import { plugin } from 'heddle'
export default plugin(() => { ${how} })`
  const domains = await folderOf(t, {
    'ask/plugins/fail-at-once.ts': fails("throw new Error('Set MODEL_KEY in your environment')"),
    'ask/plugins/fail-later.ts': fails("setTimeout(() => { throw new Error('MODEL_KEY is missing') }, 20)"),
    'ask/plugins/fail-otherwise.ts': fails("throw new Error('Set NOBODY_HAS_IT')"),
  })
  const env = { NODE_ENV: 'production', MODEL_KEY: 'x' }
  const heddle = await startHeddle(t, { domains: [domains, SYSTEM_ROUTES], lanes: 1, env })
  const hint = '(lanes do not see MODEL_KEY: add it to LANE_ENV)'
  for (const text of ['Set MODEL_KEY in your environment', 'MODEL_KEY is missing'])
    await until(async () => heddle.logs.some(({ msg }) => msg.includes(`${text} ${hint}`)), text)
  const { msg } = await until(async () => heddle.logs.find(({ msg }) => msg.includes('Set NOBODY')), 'the other')
  assert.doesNotMatch(msg, /LANE_ENV/)
  assert.equal(await heddle.stop(), 0)
})
