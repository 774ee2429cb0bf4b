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
import { postgresServer } from '../../support/servers/postgres.ts'
import { isRunning } from '../../support/servers/process-tree.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PM2 = resolve(ROOT, 'node_modules/.bin/pm2')
const PROCESS_FILE = 'deploy/ecosystem.config.cjs'
const COMMAND_MS = 180_000

interface Listed {
  pid: number
  pm2_env: { status: string; exit_code?: number; restart_time: number }
}

/** A daemon of pm2 with a home of its own, gone after the test with all that it has started. */
async function ownPm2(t: TestContext, more: Record<string, string> = {}) {
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
    const { stdout } = await promisify(execFile)(PM2, args, { cwd: ROOT, env, timeout: COMMAND_MS })
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
    await run('kill').catch(() => {})
    for (const pid of seen) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    await rm(home, { recursive: true, force: true })
  })
  return { home: env.PM2_HOME, port, run, list, daemonPid }
}

test('pm2 reload replaces both processes of the shipped process file under load, and no request fails', async (t) => {
  // On SQLite the second process is never ready, because the first one has the event log: pm2 goes on after a minute for each start.
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const pm2 = await ownPm2(t, { ...postgres.env, TOOLS: 'postgres', EVENT_BUS_DRIVER: 'database' })
  await pm2.run('start', PROCESS_FILE)
  const generations = [await pidsOf(pm2)]
  const daemon = await pm2.daemonPid()

  const load = startLoad({ port: pm2.port, path: '/hello/load', keepAlive: 24, reconnecting: 4, everyMs: 15 })
  t.after(() => load.stop())
  for (let reload = 0; reload < 2; reload++) {
    const before = load.answered
    await until(() => load.answered > before + 1000, 'a steady load', 60_000)
    await pm2.run('reload', 'heddle')
    generations.push(await pidsOf(pm2))
  }
  const before = load.answered
  await until(() => load.answered > before + 1000, 'a steady load', 60_000)
  await load.stop()

  const isOfKept = (failure: string) => failure.startsWith('keep-alive: ')
  assert.deepEqual(load.failures.filter(isOfKept), [])
  assert.ok(load.closedByAnswer > 0, 'no connection was moved: nothing was reloaded')
  // A connection in the accept queue at the very moment when its listener closes is reset by a kernel whose tcp_migrate_req is 0.
  const ofNew = load.failures.filter((failure) => !isOfKept(failure))
  assert.ok(ofNew.length <= 4 && ofNew.every((failure) => failure.includes('ECONNRESET')), ofNew.join('\n'))
  t.diagnostic(`${load.answered} answered, ${load.closedByAnswer} connections moved, ${ofNew.length} new ones reset`)

  assert.equal(new Set(generations.flat()).size, 6, `processes of three generations: ${JSON.stringify(generations)}`)
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
  // It waits for processes that tell it that they are ready.
  const started = pm2.run('start', PROCESS_FILE).catch(() => {})
  await until(async () => existsSync(join(pm2.home, 'pm2.log')) && (await exits()) === 2, 'both have ended', 60_000)
  // Many times the delay after which pm2 starts a process again.
  await setTimeout(3000)
  assert.equal(await exits(), 2)
  assert.deepEqual(
    (await pm2.list()).map(({ pm2_env }) => [pm2_env.exit_code, pm2_env.restart_time]),
    [
      [78, 0],
      [78, 0],
    ],
  )
  await pm2.run('kill')
  await started
})

async function pidsOf({ list }: { list: () => Promise<Listed[]> }): Promise<number[]> {
  const processes = await list()
  assert.deepEqual(
    processes.map(({ pm2_env }) => pm2_env.status),
    ['online', 'online'],
  )
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
