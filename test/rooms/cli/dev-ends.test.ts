import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import { freePort } from '../../support/port.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { deployedApplication, PROGRAM } from '../deploy/deployed.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const START_MS = 90_000
const END_MS = 40_000
const MARK = 'HEDDLE_TEST_DEV_ENDS'
const NEEDS = {
  skip: process.platform === 'linux' && existsSync('/usr/bin/script') ? false : 'no script(1) of util-linux here',
}

const owner = suiteOwner()
let application: string
before(async () => {
  const scripts = { dev: 'exec heddle dev', start: 'exec heddle start' }
  application = await deployedApplication(owner, ['pm2'], { manifest: { scripts } })
  const bin = join(application, 'node_modules/.bin')
  mkdirSync(bin)
  chmodSync(join(application, PROGRAM), 0o755)
  symlinkSync(join('../..', PROGRAM), join(bin, 'heddle'))
})

interface Started {
  starter: ChildProcess
  port: number
  /** Every process that has begun since, and lives. */
  family(): number[]
}

/** Runs a command, in a terminal of its own or without one, until it serves. */
async function started(t: TestContext, command: string, hasTerminal: boolean, cwd = application): Promise<Started> {
  const port = await freePort()
  const mark = `${process.pid}-${port}`
  const [program, args] = hasTerminal ? ['script', ['-qec', command, '/dev/null']] : ['/bin/bash', ['-c', command]]
  const starter = spawn(program as string, args as string[], {
    cwd,
    detached: true,
    stdio: [hasTerminal ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      TERM: 'xterm',
      LANES: '1',
      HTTP_PORT: String(port),
      SQLITE_PATH: join(temporaryFolder(t), 'service.db'),
      HISTORY_ENABLED: 'false',
      [MARK]: mark,
    },
  })
  let output = ''
  for (const stream of [starter.stdout, starter.stderr])
    stream!.setEncoding('utf8').on('data', (text: string) => (output += text))
  const family = (): number[] => marked(mark)
  t.after(() => {
    for (const pid of family()) killIfAlive(pid)
  })
  await until(() => isTaken(port), 'it serves', START_MS).catch((error: Error) => {
    throw new Error(`${error.message}\n${output}`)
  })
  return { starter, port, family }
}

/** Processes with this mark in their environment: whoever their parent is. */
const marked = (mark: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).includes(`${MARK}=${mark}`))
    .map(Number)

const environmentOf = (pid: string): string[] => read(`/proc/${pid}/environ`).split('\0')
const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')

/** Empty once the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** A process may end on its own between the look and the signal. */
function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function isTaken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function assertOver({ port, family }: Started): Promise<void> {
  await until(() => family().length === 0, 'no process is left', END_MS).catch((error: Error) => {
    throw new Error(`${error.message}\n${family().map(commandOf).join('\n')}`)
  })
  assert.equal(await isTaken(port), false, 'the port is free')
}

const REPOSITORY_DEV = 'exec node --require ./src/preload.cjs src/main.ts --watch'

const ON_TERMINALS: Record<string, [command: string, cwd?: () => string]> = {
  'npm run dev of an application': ['npm run dev'],
  'npx heddle dev': ['npx heddle dev'],
  'heddle dev without npm': ['node_modules/.bin/heddle dev'],
  'the repository': [REPOSITORY_DEV, () => ROOT],
  'npm run dev in the background of a shell': ['bash -c "set -m; npm run dev & sleep 1000"'],
  'a shell that ignores SIGHUP': [`bash -c "trap '' HUP; npm run dev; true"`],
  'a session of its own on the terminal': ['setsid node_modules/.bin/heddle dev; sleep 1000'],
}

for (const [what, [command, cwd]] of Object.entries(ON_TERMINALS)) {
  test(`${what}: it ends when its terminal is closed, and the port is free`, NEEDS, async (t) => {
    const dev = await started(t, command, true, cwd?.())
    // As a window that is closed, or a connection that drops: who holds the other end of the terminal is gone.
    dev.starter.kill('SIGKILL')
    for (const pid of dev.family()) if (commandOf(pid).startsWith('sleep ')) killIfAlive(pid)
    await assertOver(dev)
  })
}

const KILLED: Record<string, RegExp> = { npm: /^npm run dev/, 'heddle dev': /heddle dev $/ }

for (const [what, killed] of Object.entries(KILLED)) {
  test(`npm run dev without a terminal: it ends when ${what} is killed`, NEEDS, async (t) => {
    const dev = await started(t, 'npm run dev', false)
    const pid = dev.family().find((each) => killed.test(commandOf(each)))
    assert.ok(pid, dev.family().map(commandOf).join('\n'))
    process.kill(pid, 'SIGKILL')
    await assertOver(dev)
  })
}

test('npm run dev without a terminal: SIGHUP ends it', NEEDS, async (t) => {
  const dev = await started(t, 'npm run dev', false)
  process.kill(-dev.starter.pid!, 'SIGHUP')
  await assertOver(dev)
})

test('heddle dev in the background of a script that ends goes on', NEEDS, async (t) => {
  const dev = await started(t, 'node_modules/.bin/heddle dev & sleep 0.1', false)
  await until(() => dev.starter.exitCode !== null || dev.family().every((pid) => pid !== dev.starter.pid), 'it ends')
  // Several times the interval in which it looks.
  await new Promise((resolve) => setTimeout(resolve, 1500))
  assert.equal(await isTaken(dev.port), true)
})

test('npm start goes on when its terminal is closed, and does so with its new code', NEEDS, async (t) => {
  const service = await started(t, 'npm start', true)
  service.starter.kill('SIGKILL')
  await until(() => !service.family().some((pid) => /^npm /.test(commandOf(pid))), 'npm has ended', END_MS)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  assert.equal(await isTaken(service.port), true)
})
