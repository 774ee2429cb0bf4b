import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { EXIT_CONFIG } from '../../../src/core/config/load.ts'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { killAfterMs } from '../../../src/core/config/time-limits.ts'
import { ServiceManager } from '../../../src/guardian/service-manager.cjs'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const readUnit = (file: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url)), 'utf8')
const has = (command: string): boolean => spawnSync(command, ['--version']).error === undefined
const NEEDS_NOTIFY = { skip: has('systemd-notify') ? false : 'systemd-notify is not installed' }
const NEEDS_ANALYZE = { skip: has('systemd-analyze') ? false : 'systemd-analyze is not installed' }

const RECEIVER = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True: print(json.dumps(s.recv(65536).decode().split('\\n')), flush=True)
`

/** A datagram socket as the service manager has it, and the messages that came, without those that only wait for their reading. */
async function notifySocket(t: TestContext) {
  const path = join(temporaryFolder(t), 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => receiver.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  receiver.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const all = (rest + chunk).split('\n')
    rest = all.pop()!
    lines.push(...all)
  })
  await until(() => lines.includes('bound'), 'the socket')
  const messages = (): string[][] =>
    lines
      .slice(1)
      .map((line) => JSON.parse(line) as string[])
      .filter((message) => !message.includes('BARRIER=1'))
  return { path, messages }
}

test('heddle tells the service manager that it serves, and that it stops', NEEDS_NOTIFY, async (t) => {
  const { path, messages } = await notifySocket(t)
  const heddle = await startHeddle(t, { lanes: 1, env: { NOTIFY_SOCKET: path } })
  await until(() => messages().length === 1, 'READY')
  const [ready] = messages()
  assert.ok(ready!.includes('READY=1'), String(ready))
  assert.ok(ready!.includes(`MAINPID=${heddle.process.pid}`), String(ready))
  assert.ok(ready!.includes(`STATUS=Serving on port ${heddle.port}, 1 lanes`), String(ready))
  assert.equal(await heddle.stop(), 0)
  await until(() => messages().length === 2, 'STOPPING')
  assert.ok(messages()[1]!.includes('STOPPING=1'))
})

test('a stop asks systemd for the time that the settings give it, before the drain begins', NEEDS_NOTIFY, async (t) => {
  const { path, messages } = await notifySocket(t)
  const env = { NOTIFY_SOCKET: path, SHUTDOWN_DELAY_MS: '30000', SHUTDOWN_TIMEOUT_MS: '120000' }
  const heddle = await startHeddle(t, { lanes: 1, env })
  heddle.process.kill('SIGTERM')
  await until(() => messages().some((message) => message.includes('STOPPING=1')), 'STOPPING')
  const stopping = messages().find((message) => message.includes('STOPPING=1'))!
  const askedUs = Number(stopping.find((line) => line.startsWith('EXTEND_TIMEOUT_USEC='))?.split('=')[1])
  assert.equal(askedUs, 1000 * killAfterMs({ shutdownDelayMs: 30_000, shutdownTimeoutMs: 120_000 }))
  assert.ok(!heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'))
  heddle.process.kill('SIGTERM')
})

test('while the main thread turns, the watchdog is told; another process is not asked', NEEDS_NOTIFY, async (t) => {
  const { path, messages } = await notifySocket(t)
  const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: '300000' }
  const beats = () => messages().filter((message) => message.includes('WATCHDOG=1'))
  const heddle = await startHeddle(t, { lanes: 1, env })
  await until(() => beats().length >= 3, 'three beats')
  assert.equal(await heddle.stop(), 0)

  const asked = beats().length
  const other = await startHeddle(t, { lanes: 1, env: { ...env, WATCHDOG_PID: '1' } })
  assert.equal(await other.stop(), 0)
  assert.equal(beats().length, asked)
})

test('a reload is told with its time, and what is said last arrives last', NEEDS_NOTIFY, async (t) => {
  const { path, messages } = await notifySocket(t)
  const before = process.env.NOTIFY_SOCKET
  process.env.NOTIFY_SOCKET = path
  t.after(() => {
    if (before === undefined) delete process.env.NOTIFY_SOCKET
    else process.env.NOTIFY_SOCKET = before
  })
  const manager = new ServiceManager(path, (message) => assert.fail(message))
  void manager.reloading('Replacing\nthe lanes')
  await manager.ready('Serving')
  await until(() => messages().length === 2, 'both')
  const [reloading, ready] = messages()
  assert.ok(reloading!.includes('RELOADING=1') && reloading!.includes('STATUS=Replacing the lanes'), String(reloading))
  const toldUs = Number(reloading!.find((line) => line.startsWith('MONOTONIC_USEC='))?.split('=')[1])
  assert.ok(Math.abs(toldUs - Number(process.hrtime.bigint() / 1000n)) < 60e6, String(toldUs))
  assert.ok(ready!.includes('READY=1') && ready!.includes('STATUS=Serving'), String(ready))
})

test('a service manager that cannot be told is a warning, once, and nothing else', async (t) => {
  const heddle = await startHeddle(t, { lanes: 1, env: { NOTIFY_SOCKET: '/nowhere', PATH: '/nowhere' } })
  const warnings = () => heddle.logs.filter(({ msg }) => msg.startsWith('The service manager cannot be told'))
  await until(() => warnings().length > 0, 'the warning')
  assert.equal((await heddle.fetch('/hello/there')).status, 200)
  assert.equal(await heddle.stop(), 0)
  assert.equal(warnings().length, 1)
})

test('without a service manager nothing is run and nothing said', async () => {
  const faults: string[] = []
  const manager = new ServiceManager(undefined, (message) => faults.push(message))
  await manager.ready('Serving')
  assert.deepEqual(faults, [])
})

test('systemd accepts the units', NEEDS_ANALYZE, async (t) => {
  const folder = temporaryFolder(t)
  // A template is verified as one of its instances.
  const files = ['heddle.service', 'heddle@.service', 'heddle-migrate.service']
  const paths = await Promise.all(
    files.map(async (file) => {
      const path = join(folder, file.replace('@', '@worker-1'))
      await writeFile(path, (await readUnit(file)).replace('/opt/heddle/node_modules/.bin/node', process.execPath))
      return path
    }),
  )
  const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', ...paths])
  assert.equal((stdout + stderr).replace(/.*(man |Cannot add dependency).*\n/g, ''), '')
})

for (const file of ['heddle.service', 'heddle@.service']) {
  test(`${file} gives heddle the time to end by itself, and does not repeat a start that cannot succeed`, async () => {
    const unit = await readUnit(file)
    const setting = (name: string): string | undefined => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]
    assert.ok(Number(setting('TimeoutStopSec')) * 1000 >= Number(VARIABLES.SHUTDOWN_TIMEOUT_MS.default) + 10_000)
    assert.equal(setting('RestartPreventExitStatus'), String(EXIT_CONFIG))
    assert.equal(setting('ExecReload'), '/bin/kill -HUP $MAINPID')
    assert.ok(Number(setting('WatchdogSec')) >= 10)
    assert.equal(setting('WatchdogSignal'), 'SIGKILL')
    assert.equal(setting('Type'), 'notify')
    assert.equal(setting('NotifyAccess'), 'all')
  })
}

test('every unit is confined the same way', async () => {
  const fence = async (file: string): Promise<string[]> =>
    (await readUnit(file))
      .split('\n')
      .filter((line) => /^(NoNew|Capability|Protect|Private|Restrict|Lock|RemoveIPC|SystemCall|UMask)/.test(line))
      .filter((line) => !line.startsWith('RestartPrevent'))
  const expected = await fence('heddle.service')
  assert.ok(expected.length > 15)
  assert.deepEqual(await fence('heddle@.service'), expected)
  assert.deepEqual(await fence('heddle-migrate.service'), expected)
})

test('a replica does not start without its environment, and each has one of its own', async () => {
  const files = [...(await readUnit('heddle@.service')).matchAll(/^EnvironmentFile=(.*)$/gm)].map(([, path]) => path)
  // No `-` before them: a file that is missing is an error.
  assert.deepEqual(files, ['/etc/heddle/common.env', '/etc/heddle/%i.env'])
})
