import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startLoad } from '../../support/load.ts'
import { freePort } from '../../support/port.ts'
import { rowsOfFile, rowsOfServer } from '../../support/rows.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { isRunning } from '../../support/servers/process-tree.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { allHandled, deployedApplication, moreOrders, NAME, startOrders } from './deployed.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PM2 = resolve(ROOT, 'node_modules/.bin/pm2')
const PROCESS_FILE = 'deploy/ecosystem.config.cjs'
const COMMAND_MS = 180_000

interface Listed {
  pid: number
  pm2_env: { status: string; exit_code?: number; restart_time: number }
}

/** A daemon of pm2 with a home of its own, gone after the test with all that it has started. */
async function ownPm2(t: TestContext, more: Record<string, string> = {}, cwd = ROOT) {
  const home = await mkdtemp(join(tmpdir(), 'heddle-pm2-'))
  const port = await freePort()
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TMPDIR: process.env.TMPDIR,
    PM2_HOME: join(home, 'pm2'),
    PM2_DISABLE_VERSION_CHECK: 'true',
    HTTP_PORT: String(port),
    LANES: '1',
    SQLITE_PATH: join(home, 'service.db'),
    AUTH_SECRET_KEY: 'a secret that both of the processes have',
    ...more,
  }
  const seen = new Set<number>()
  const run = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(PM2, args, { cwd, env, timeout: COMMAND_MS })
    return stdout
  }
  const list = async (): Promise<Listed[]> => {
    // A notice may stand before it.
    const text = await run('jlist')
    const processes = JSON.parse(text.slice(text.indexOf('[{'))) as Listed[]
    // 0 is one that has ended, and to a signal the whole group of this process.
    for (const { pid } of processes) if (pid > 0) seen.add(pid)
    return processes
  }
  const daemonPid = async (): Promise<number> => Number(await readFile(join(env.PM2_HOME, 'pm2.pid'), 'utf8'))
  t.after(async () => {
    // The folder of the application is gone by now.
    await promisify(execFile)(PM2, ['kill'], { cwd: ROOT, env, timeout: COMMAND_MS }).catch(() => {})
    for (const pid of seen) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    await rm(home, { recursive: true, force: true })
  })
  return { home: env.PM2_HOME, port, run, list, daemonPid }
}

test('pm2 reload replaces both processes of the shipped process file under load, and no request fails', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const pm2 = await ownPm2(t, { ...postgres.env, TOOLS: 'postgres', INSTANCES: '2' })
  await pm2.run('start', PROCESS_FILE)
  const generations = [await pidsOf(pm2)]
  const daemon = await pm2.daemonPid()

  const load = startLoad({ port: pm2.port, path: '/hello/load', keepAlive: 24, reconnecting: 4, everyMs: 15 })
  t.after(() => load.stop())
  const steady = async (): Promise<void> => {
    const before = load.answered
    await until(() => load.answered > before + 1000, 'a steady load', 60_000)
  }
  await steady()
  await pm2.run('reload', 'heddle')
  generations.push(await pidsOf(pm2))
  await steady()
  await load.stop()

  const isOfKept = (failure: string) => failure.startsWith('keep-alive: ')
  assert.deepEqual(load.failures.filter(isOfKept), [])
  assert.ok(load.closedByAnswer > 0, 'no connection was moved: nothing was reloaded')
  // A connection in the accept queue at the very moment when its listener closes is reset by a kernel whose tcp_migrate_req is 0.
  const ofNew = load.failures.filter((failure) => !isOfKept(failure))
  assert.ok(ofNew.length <= 4 && ofNew.every((failure) => failure.includes('ECONNRESET')), ofNew.join('\n'))
  t.diagnostic(`${load.answered} answered, ${load.closedByAnswer} connections moved, ${ofNew.length} new ones reset`)

  assert.equal(new Set(generations.flat()).size, 4, `processes of two generations: ${JSON.stringify(generations)}`)
  assert.deepEqual(await replicasOf(pm2.home), [`:${pm2.port}:0`, `:${pm2.port}:1`])

  await pm2.run('kill')
  for (const pid of [daemon, ...generations.flat()]) await until(() => !isRunning(pid), `process ${pid} is gone`)
  const log = await readFile(join(pm2.home, 'pm2.log'), 'utf8')
  const exits = [...log.matchAll(/exited with code \[(\w+)\]/g)].map(([, code]) => code)
  assert.deepEqual(
    exits,
    exits.map(() => '0'),
  )
  assert.ok(exits.length >= 4, log)
  assert.doesNotMatch(log, /SIGKILL/)
})

test('pm2 does not start again what has ended with 78, because its environment is not valid', async (t) => {
  const pm2 = await ownPm2(t, { LANES: 'many' })
  const exits = async (): Promise<number> =>
    (await readFile(join(pm2.home, 'pm2.log'), 'utf8')).split('exited with code [78]').length - 1
  const started = pm2.run('start', PROCESS_FILE).catch(() => {})
  await until(async () => existsSync(join(pm2.home, 'pm2.log')) && (await exits()) === 1, 'it has ended', 60_000)
  // Many times the delay after which pm2 starts a process again.
  await setTimeout(3000)
  assert.equal(await exits(), 1)
  assert.deepEqual(
    (await pm2.list()).map(({ pm2_env }) => [pm2_env.exit_code, pm2_env.restart_time]),
    [[78, 0]],
  )
  await pm2.run('kill')
  await started
})

/** What each stage is made of, and how its code is replaced without a request that is refused. */
const STAGES = {
  sqlite: { tools: {}, instances: 1, reload: ['sendSignal', 'SIGHUP', NAME] },
  postgres: { tools: { db: 'postgres' }, instances: 2, reload: ['reload', NAME] },
  'postgres and redis': { tools: { db: 'postgres', state: 'redis-state' }, instances: 2, reload: ['reload', NAME] },
}

for (const [stage, { tools, instances, reload }] of Object.entries(STAGES)) {
  test(`the written process file on ${stage}: no order is refused and no event lost while pm2 replaces the code`, async (t) => {
    const postgres = 'db' in tools ? await postgresServer(t) : undefined
    const redis = 'state' in tools ? await redisServer(t) : undefined
    if (postgres === null || redis === null) return
    const manifest = Object.keys(tools).length === 0 ? {} : { heddle: { tools } }
    const folder = await deployedApplication(t, ['pm2'], { manifest, dotEnv: 'SHUTDOWN_TIMEOUT_MS=9000\n' })
    const env = { ...postgres?.env, ...redis?.env, LANE_ENV: 'HOLD' }
    const pm2 = await ownPm2(t, env, folder)
    await pm2.run('start', PROCESS_FILE)
    const before = await pidsOf(pm2)
    assert.equal(before.length, instances)
    const orders = startOrders(pm2.port)
    t.after(() => orders.stop())
    await moreOrders(orders)
    await pm2.run(...reload)
    if (reload[0] === 'sendSignal') await until(() => hasReloaded(pm2.home), 'the lanes are replaced', 60_000)
    else assert.equal(new Set([...before, ...(await pidsOf(pm2))]).size, 2 * instances)
    await moreOrders(orders)
    await orders.stop()
    // A connection in the accept queue of a listener that closes is reset by a kernel whose tcp_migrate_req is 0.
    const refused = orders.refused.filter((line) => !line.endsWith('ECONNRESET'))
    assert.deepEqual(refused, [])
    assert.ok(orders.refused.length <= 2 * instances, orders.refused.join())
    const rows = postgres ? rowsOfServer(t, postgres) : rowsOfFile(join(pm2.home, '../service.db'))
    await allHandled(orders, rows)
    t.diagnostic(`${orders.taken.length} orders, ${orders.refused.length} connections reset`)
  })
}

async function hasReloaded(home: string): Promise<boolean> {
  const logs = await readdir(join(home, 'logs'))
  const texts = await Promise.all(logs.map((file) => readFile(join(home, 'logs', file), 'utf8')))
  return texts.join('').includes('Reloaded in')
}

async function pidsOf({ list }: { list: () => Promise<Listed[]> }): Promise<number[]> {
  const processes = await list()
  for (const { pm2_env } of processes) assert.equal(pm2_env.status, 'online')
  return processes.map(({ pid }) => pid)
}

/** The names under which the processes have logged, without the host. */
async function replicasOf(home: string): Promise<string[]> {
  const names = new Set<string>()
  for (const file of await readdir(join(home, 'logs'))) {
    const text = await readFile(join(home, 'logs', file), 'utf8')
    for (const line of text.split('\n').filter(Boolean)) names.add((JSON.parse(line) as { replica: string }).replica)
  }
  return [...names].map((name) => name.slice(name.indexOf(':'))).sort()
}
