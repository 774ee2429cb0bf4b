import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, type StartOptions, startHeddle } from '../../support/heddle.ts'
import { SHIPPED, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const HAS_INSPECTOR = process.allowedNodeEnvironmentFlags.has('--allow-inspector')
const HAS_NET = process.allowedNodeEnvironmentFlags.has('--allow-net')

const PLUGIN = `
import { execFileSync, fork, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { plugin } from 'heddle'
import { linked } from 'linked'
import { VERSION } from '../version.ts'

let rows = 0
export default plugin(({ db, event_bus, http }) => {
  http.get('/read', ({ path }) => ({ text: readFileSync(String(path), 'utf8') }))
  http.get('/exists', ({ path }) => ({ exists: existsSync(String(path)) }))
  http.post('/write', ({ path }) => (writeFileSync(String(path), 'written'), {}))
  http.get('/child', () => ({ text: execFileSync('echo', ['started'], { encoding: 'utf8' }) }))
  http.get('/stays', () => ({ pid: spawn('sleep', ['1000'], { env: {}, stdio: 'ignore' }).pid }))
  http.get('/fork', ({ path }) => new Promise((resolve, reject) => {
    fork(String(path)).once('message', resolve).once('exit', (code) => reject(new Error('it ended with ' + code)))
  }))
  http.get('/thread', () => new Promise((resolve) => new Worker('0', { eval: true }).once('exit', () => resolve({}))))
  http.get('/fetch', ({ port }) => fetch('http://127.0.0.1:' + port + '/version').then((answer) => answer.json()))
  http.post('/rows', async () => {
    await db.execute('CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY)')
    return db.transaction(async (tx) => {
      await tx.execute('INSERT INTO rows DEFAULT VALUES')
      await tx.publish('row.added', {})
      return tx.queryOne('SELECT count(*) AS count FROM rows')
    })
  })
  event_bus.subscribe('row.added', function seen() { rows++ })
  http.get('/seen', () => ({ rows }))
  http.get('/db', async () => ({ one: (await db.queryOne('SELECT 1 AS one')).one }))
  http.post('/late', () => (setTimeout(() => readFileSync('/etc/hosts')), {}))
  http.post('/exit', () => process.exit(3))
  http.get('/version', () => ({ version: VERSION, linked, env: process.permission.has('fs.read', process.cwd() + '/.env') }))
})
`

function isLiving(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

interface Application {
  heddle: Heddle
  folder: string
  /** The message that the log has for a request that fails. */
  refusal: (method: 'GET' | 'POST', path: string) => Promise<string>
}

async function start(
  t: TestContext,
  permissions: string,
  more: Partial<StartOptions> & { beside?: string } = {},
): Promise<Application> {
  const folder = await folderOf(t, {
    'domains/try/plugins/try-things.ts': PLUGIN,
    'domains/try/version.ts': 'export const VERSION: number = 1',
    'elsewhere/linked/package.json': '{"name":"linked","version":"1.0.0"}',
    'elsewhere/linked/index.js': "exports.linked = 'yes'",
    'given/some.txt': 'some',
    'given/forked.cjs': 'process.send({ forked: true, bound: process.permission !== undefined })',
    'private.txt': 'private',
  })
  // As a workspace has it: all packages stand elsewhere.
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'node_modules'))
  const heddle = await startHeddle(t, {
    ...more,
    domains: [join(folder, 'domains'), more.beside ?? SYSTEM_ROUTES],
    env: { LANE_PERMISSIONS: permissions.replaceAll('./', `${folder}/`), LANE_STALL_MS: '1000', ...more.env },
  })
  const refusal = async (method: string, path: string): Promise<string> => {
    const seen = heddle.logs.length
    assert.equal((await heddle.json(path, { method })).status, 500)
    return until(() => heddle.logs.slice(seen).find(({ msg }) => msg.includes(' failed: '))?.msg, 'the line of the log')
  }
  return { heddle, folder, refusal }
}

const version = async ({ heddle }: Application) => (await heddle.json('/version')).body

/** @param of a new lane does it as the first one did */
async function isBound({ heddle, folder, refusal }: Application): Promise<void> {
  const read = (path: string) => `/read?path=${encodeURIComponent(path)}`
  // A plugin that has just ended a lane may wait for one of its own.
  const first = await until(async () => {
    const answer = await heddle.json(read(join(folder, 'given/some.txt')))
    return answer.status === 503 ? null : answer
  }, 'a lane for the plugin')
  assert.deepEqual(first.body, { text: 'some' })
  assert.deepEqual((await heddle.json('/db')).body, { one: 1 })
  const secret = join(folder, 'private.txt')
  const lacks = (item: string) => `Access to this API has been restricted (LANE_PERMISSIONS lacks ${item})`
  assert.equal(await refusal('GET', read(secret)), `/read failed: ${lacks(`fs-read:${secret}`)}`)
  assert.equal(await refusal('GET', read('/proc/self/environ')), `/read failed: ${lacks('fs-read:/proc/self/environ')}`)
}

describe('LANE_PERMISSIONS', { concurrency: false }, () => {
  test('lets plugins do what is listed, and names what it lacks for all else', async (t) => {
    const application = await start(t, 'addons,fs-read:./given,fs-read:./given-later,fs-write:./made', { lanes: 1 })
    const { heddle, folder, refusal } = application
    await isBound(application)
    assert.deepEqual(await version(application), { version: 1, linked: 'yes', env: false })
    assert.deepEqual((await heddle.json(`/exists?path=${folder}/given`)).body, { exists: true }, 'the folder itself')
    assert.match(await refusal('GET', '/exists?path=/etc/hosts'), /lacks fs-read:\/etc\/hosts\)$/)
    assert.match(await refusal('POST', `/write?path=${folder}/given/x`), /lacks fs-write:\/.*\/given\/x\)$/)
    mkdirSync(join(folder, 'made'))
    assert.equal((await heddle.json(`/write?path=${folder}/made/x`, { method: 'POST' })).status, 200)
    assert.match(await refusal('GET', '/child'), /lacks child\)$/)
    assert.match(await refusal('GET', '/thread'), /lacks worker\)$/)
    const fetched = `/fetch?port=${heddle.port}`
    if (HAS_NET) assert.match(await refusal('GET', fetched), /lacks net\)$/)
    else assert.equal((await heddle.json(fetched)).status, 200)
    assert.deepEqual((await heddle.post('/rows')).body, { count: 1 }, 'the primary brings it to the disk')
    await until(async () => (await heddle.json('/seen')).body.rows === 1, 'the event')
    assert.deepEqual(heddle.errors, [], 'no warning of Node')
  })

  test('holds for whatever lane comes later: after a death, and with new code, which it may not compile itself', async (t) => {
    const application = await start(t, 'addons,fs-read:./given')
    const { heddle, folder } = application
    const died = (text: string) =>
      until(() => heddle.logs.find(({ msg }) => / died: /.test(msg) && msg.includes(text)), text)
    await heddle.post('/late')
    const { msg } = (await died('LANE_PERMISSIONS lacks fs-read:/etc/hosts'))!
    assert.match(msg, /in try\.TryThings at .*try-things\.ts:\d+/)
    await isBound(application)
    await heddle.post('/exit')
    await died('process.exit(3)')
    await isBound(application)

    writeFileSync(join(folder, 'domains/try/version.ts'), `export const VERSION: number = ${Date.now()}`)
    heddle.process.kill('SIGHUP')
    await until(async () => (await version(application)).version > 1, 'the new code')
    await isBound(application)
    assert.deepEqual((await heddle.json('/system/status')).body.plugins['try.TryThings'].status, 'OK')
  })

  test('lets plugins start processes and threads where that is listed, which end with their lane', async (t) => {
    const { heddle } = await start(t, 'addons,child,worker')
    assert.deepEqual((await heddle.json('/child')).body, { text: 'started\n' })
    const { pid } = (await heddle.json('/stays')).body
    assert.ok(process.kill(pid, 0))
    await heddle.post('/late')
    await until(() => !isLiving(pid), 'the end of the process')
  })

  test('binds what `fork` starts, too', async (t) => {
    const net = HAS_NET ? ',net' : ''
    const { heddle, folder } = await start(t, `addons,child,worker,fs-read${net}`)
    assert.equal((await heddle.json('/thread')).status, 200)
    assert.equal((await heddle.json(`/fetch?port=${heddle.port}`)).status, 200)
    assert.deepEqual((await heddle.json(`/fork?path=${folder}/given/forked.cjs`)).body, { forked: true, bound: true })
    assert.equal((await heddle.json('/read?path=/etc/hosts')).status, 200)
    assert.doesNotMatch(heddle.errors.join(''), /ExperimentalWarning/)
  })

  test('is with the guardian, which reads what lanes have begun, and with a history', async (t) => {
    const application = await start(t, 'addons,fs-read:./given', {
      isGuarded: true,
      beside: SHIPPED,
      env: { HISTORY_ENABLED: 'true' },
    })
    await isBound(application)
    const { heddle } = application
    const kept = async () => (await heddle.json('/system/requests?route=/db')).body[0]
    const { id } = await until(kept, 'the request in the history')
    assert.match(JSON.stringify((await heddle.json(`/system/requests/${id}`)).body), /SELECT \? AS one/)
  })

  test('says at the start where this Node cannot stop a lane that loops', async (t) => {
    const { heddle } = await start(t, 'addons')
    const warnings = heddle.logs.filter(({ msg }) => msg.startsWith('LANE_PERMISSIONS on Node'))
    assert.equal(warnings.length, HAS_INSPECTOR ? 0 : 1)
  })
})
