import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { timesOf } from '../../../src/core/schedule/thread-clock.cjs'
import { folderOf, temporaryFolder } from '../../support/folder.ts'
import { type Heddle, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { takenPort } from '../../support/port.ts'
import { until } from '../../support/until.ts'
import { NATIVE, sleeping, someSeconds } from '../lanes/native.ts'
import { isRunning, RISKY, startGuarded } from './guarded.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

test('a second SIGTERM ends the service at once, however soon it comes, where no npm sends one twice', async (t) => {
  const heddle = await startGuarded(t, { SHUTDOWN_TIMEOUT_MS: '60000' })
  const pid = await heddle.pid()
  const waiting = heddle.fetch('/wait?ms=60000').catch(() => null)
  await until(async () => (await heddle.json('/waiting')).body.waiting === 1, 'the request in flight')
  const exited = once(heddle.process, 'exit')
  heddle.process.kill('SIGTERM')
  // The system makes one of two that arrive at the same moment.
  await until(() => heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the drain')
  heddle.process.kill('SIGTERM')
  assert.equal((await exited)[0], 1)
  await waiting
  assert.equal(isRunning(pid), false)
})

/** Its primary thread has worked so long when its end is overdue, milliseconds: whoever waits for a core is given time. */
const OVERDUE_MS = 30_000
const NEVER_MS = 600_000

/** A process whose primary thread hangs ends: SHUTDOWN_TIMEOUT_MS and four seconds of that thread's own time after its guardian. */
async function endsThoughItHangs(pid: number): Promise<void> {
  const cpuMs = () => timesOf(`/proc/${pid}/task/${pid}`)?.cpuMs ?? 0
  const beforeMs = cpuMs()
  await until(() => !isRunning(pid) || cpuMs() - beforeMs > OVERDUE_MS, 'the end of the runtime', NEVER_MS)
  assert.equal(isRunning(pid), false, `it runs on after ${OVERDUE_MS} ms of work`)
}

async function flightFolders(guardian: number): Promise<string[]> {
  const names = await readdir('/dev/shm').catch(() => [])
  return names.filter((name) => new RegExp(`^heddle-flight-\\d*-${guardian}-`).test(name))
}

test('a runtime whose guardian is killed drains and ends', async (t) => {
  const heddle = await startGuarded(t)
  const pid = await heddle.pid()
  heddle.process.kill('SIGKILL')
  await until(() => !isRunning(pid), 'the end of the runtime', 30_000)
  assert.ok(heddle.logs.some(({ msg }) => msg === 'The guardian is gone'))
  assert.deepEqual(await flightFolders(heddle.process.pid!), [])
})

test('a runtime whose guardian is killed while the primary thread hangs is ended by a lane', async (t) => {
  const heddle = await startGuarded(t, { PRIMARY_STALL_MS: '600000', SHUTDOWN_TIMEOUT_MS: '500' })
  const pid = await heddle.pid()
  const stalled = heddle.fetch('/primary/stall?ms=600000').catch(() => {})
  const hangs = () =>
    heddle.fetch('/pid', { signal: AbortSignal.timeout(500) }).then(
      () => false,
      () => true,
    )
  await until(hangs, 'the primary thread hangs')
  heddle.process.kill('SIGKILL')
  t.after(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  await endsThoughItHangs(pid)
  await stalled
})

test('the history ends it where the lanes hang, too, so that nobody holds the port for ever', async (t) => {
  const folder = temporaryFolder(t)
  const history = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db') }
  const heddle = await startGuarded(t, { PRIMARY_STALL_MS: '600000', SHUTDOWN_TIMEOUT_MS: '500', ...history })
  const pid = await heddle.pid()
  const hangs = (path: string) =>
    heddle.fetch(path, { signal: AbortSignal.timeout(500) }).then(
      () => false,
      () => true,
    )
  const requests = [heddle.fetch('/stall').catch(() => {})]
  await until(() => hangs('/pid'), 'the lane hangs')
  requests.push(heddle.fetch('/primary/stall?ms=600000').catch(() => {}))
  await until(() => hangs('/nowhere'), 'the primary thread hangs')
  heddle.process.kill('SIGKILL')
  t.after(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  await endsThoughItHangs(pid)
  await Promise.all(requests)
})

/** A process whose main thread hangs, and which another thread watches that begins when the guardian is gone. */
const WATCHED = `
  const { Worker } = require('node:worker_threads')
  const [, guardian, preload, file] = process.argv
  new Worker('require(' + JSON.stringify(file) + ').watchGuardian(' + guardian + ', 0); setInterval(() => {}, 1000)', { eval: true, execArgv: ['--require', preload] })
  setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 1000)
`

test('so does a thread that begins after the end of the guardian, of which only its process id tells', async () => {
  const gone = spawnSync(process.execPath, ['-e', '']).pid
  const [preload, file] = ['src/preload.cjs', 'src/core/modules/guardian-watch.ts'].map((path) => join(ROOT, path))
  const child = spawn(process.execPath, ['-e', WATCHED, String(gone), preload!, file!], { stdio: 'inherit' })
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
})

test('a process that ends with 0 by itself is not started again', async (t) => {
  const heddle = await startGuarded(t)
  const exited = once(heddle.process, 'exit')
  await heddle.die('/primary/exit?code=0')
  assert.equal((await exited)[0], 0)
})

/** `npm start` in a folder, which serves by now. */
const startNpm = (t: TestContext, project?: string): Promise<Heddle> =>
  startHeddle(t, {
    command: ['npm', 'start'],
    project,
    lanes: 1,
    domains: [RISKY],
    env: { GUARDIAN: 'true', AUTH_SECRET_KEY: 'x'.repeat(32) },
  })

/** Every line that has come so far. */
const output = ({ logs, errors }: Heddle): string => [...logs.map(({ msg }) => msg), ...errors].join('\n')

test('SIGHUP to npm itself, which dies of it and passes nothing on, reloads the service', async (t) => {
  const heddle = await startNpm(t)
  heddle.process.kill('SIGHUP')
  assert.deepEqual((await once(heddle.process, 'exit'))[1], 'SIGHUP')
  const [, pid] = await until(() => /goes on as process (\d+)/.exec(output(heddle)), 'the guardian tells its process')
  await until(() => output(heddle).includes('Reloaded in'), 'it has reloaded', 60_000)
  process.kill(Number(pid), 'SIGTERM')
  await until(() => !isRunning(Number(pid)), 'it has ended', 60_000)
  assert.match(output(heddle), /SIGTERM: draining/)
})

test('SIGTERM to an npm whose script has no exec, so that a shell stands between, ends the service in order', async (t) => {
  // A second command keeps any shell from becoming the first one by itself.
  const scripts = { start: `node ${join(ROOT, 'src/guardian.cjs')}; exit $?` }
  const heddle = await startNpm(t, await folderOf(t, { 'package.json': JSON.stringify({ scripts }) }))
  heddle.process.kill('SIGTERM')
  await until(() => !isRunning(-heddle.process.pid!), 'nothing of the group is left', 60_000)
  assert.match(output(heddle), /SIGTERM: draining/)
})

test('a stop that outlives its deadline is ended with SIGKILL', async (t) => {
  const heddle = await startGuarded(t, { HOLD_STOP: '1', SHUTDOWN_TIMEOUT_MS: '500' })
  const pid = await heddle.pid()
  assert.equal(await heddle.stop(), 128 + 9)
  assert.equal(isRunning(pid), false)
})

test('an environment that is not valid is not tried again, and ends with 78', async (t) => {
  const { child, errors } = await spawnHeddle(t, { isGuarded: true, env: { LANES: 'many' } })
  assert.equal((await once(child, 'close'))[0], 78)
  assert.match(errors.join(''), /LANES: expected/)
  assert.doesNotMatch(errors.join(''), /started again/)
})

test('a first start that fails is not tried again, and ends with 1', async (t) => {
  const HTTP_PORT = String(await takenPort(t))
  const { child, errors } = await spawnHeddle(t, { isGuarded: true, lanes: 1, domains: [RISKY], env: { HTTP_PORT } })
  assert.equal((await once(child, 'close'))[0], 1)
  assert.match(errors.join(''), /cannot start/)
  assert.doesNotMatch(errors.join(''), /started again/)
})

test('GUARDIAN=false runs the service in the process of npm start itself', async (t) => {
  const heddle = await startGuarded(t, { GUARDIAN: 'false' })
  assert.equal(await heddle.pid(), heddle.process.pid)
  assert.equal(await heddle.stop(), 0)
})

const SLOW = `import { Plugin } from '#heddle'
export default class BootLong extends Plugin {
  static thread = 'primary'
  async onBoot() { await new Promise((resolve) => setTimeout(resolve, 3000)) }
}`

test('what ends the process as its first request is named, also where the lanes were up before the primary', async (t) => {
  const slow = await folderOf(t, { 'slow/plugins/boot-long.ts': SLOW })
  const heddle = await startGuarded(t, {}, [slow])
  await heddle.die('/abort/split')
  await heddle.pid()
  const line = await until(
    () => heddle.logs.find(({ msg }) => msg.startsWith('The process before this one is dead')),
    'the line',
  )
  assert.match(line.msg, / in GET \/abort\/:way$/)
  assert.equal(await heddle.stop(), 0)
})

test('what plugins have started ends with a process that is gone at once, and the next one serves', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const heddle = await startGuarded(t, { LANE_STALL_MS: '60000' }, [NATIVE[0]!])
  const seconds = someSeconds(t)
  const pid = await heddle.pid()
  // A process and one that it has started, one with an environment of its own, and one that the lane waits for.
  for (const path of ['/start', '/sleep/bare']) await heddle.json(`${path}?seconds=${seconds}`)
  void heddle.fetch(`/sleep/sync?seconds=${seconds}`).catch(() => {})
  await until(() => sleeping(seconds) === 5, 'all run')
  process.kill(pid, 'SIGKILL')
  await until(() => sleeping(seconds) === 0, 'all have ended', 30_000)
  assert.notEqual(await heddle.pid(pid), pid)
})

test('a plugin of the primary thread that loops in its boot is ended after PRIMARY_STALL_MS of work, and left out by the next process', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const folder = await folderOf(t, {
    'bad/plugins/loop.ts': `export default class Loop {
  static thread = 'primary'
  onBoot() { for (let n = 0; ; n++) if (n < 0) break }
}`,
  })
  const heddle = await startGuarded(t, { PRIMARY_STALL_MS: '2000' }, [folder])
  const { plugins } = (await heddle.json('/system/status')).body
  assert.equal(plugins['bad.Loop'].status, 'DEAD')
  assert.match(plugins['bad.Loop'].error, /while it booted/)
  assert.match(heddle.errors.join(''), /the primary thread of the runtime has stood still for \d{4,5} ms/)
  assert.equal(await heddle.stop(), 0)
})

const SWITCH = fileURLToPath(new URL('../../../src/guardian/switch.cjs', import.meta.url))

/** What a start is told by its environment, one after another, and by the `.env` of its folder. */
function toldBy(
  cwd: string,
  what: 'mode' | 'processCount',
  variable: string,
  values: (string | undefined)[],
): unknown[] {
  const script = `const told = ${JSON.stringify(values)}.map((value) => {
    if (value === null) delete process.env.${variable}
    else process.env.${variable} = value
    return require(${JSON.stringify(SWITCH)}).${what}()
  })
  console.log(JSON.stringify(told))`
  return JSON.parse(spawnSync(process.execPath, ['-e', script], { cwd, env: {} }).stdout.toString())
}

test('what is started is in production, unless the environment or .env says otherwise', async (t) => {
  const cwd = await folderOf(t, {})
  assert.deepEqual(toldBy(cwd, 'mode', 'NODE_ENV', ['', 'development']), ['production', 'development'])
  await writeFile(join(cwd, '.env'), 'NODE_ENV=staging\n')
  assert.deepEqual(toldBy(cwd, 'mode', 'NODE_ENV', ['', 'development']), ['staging', 'development'])
})

test('PROCESSES is read from .env, too; what is no number is one, which reports the fault', async (t) => {
  const cwd = await folderOf(t, { '.env': 'PROCESSES=3\n' })
  const values = [undefined, '2', '0', 'many', '-1', '1.5', '100']
  assert.deepEqual(toldBy(cwd, 'processCount', 'PROCESSES', values), [3, 2, 1, 1, 1, 1, 1], 'the environment wins')
})
