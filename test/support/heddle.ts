import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endWithProcess } from './process-end.ts'
import { SHIPPED } from './shipped-domains.ts'
import { within } from './until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Ends it when the process of the test is gone, however that ended. */
const ORPHAN_GUARD = fileURLToPath(new URL('../../bench/orphan-guard.cjs', import.meta.url))
/** How long a process may take until it serves, and until it has ended after a signal, milliseconds: as long as `until` where the cores are contended. */
const START_MS = 120_000
const END_MS = 120_000
/** Owners that have ended what they started: nobody would end what is started for them now, and the process of the tests would wait for it for ever. */
const over = new WeakSet<Owner>()
/** What a test that was given up may have started while its own was ended. */
const running = new Set<ChildProcess>()
let isOver = false
endWithProcess(async () => {
  isOver = true
  for (const child of running) child.kill('SIGKILL')
})

export interface LogLine {
  level: number
  identity: string
  msg: string
  [field: string]: unknown
}

/** A real process of the runtime, on a free port, with a database of its own. */
export interface Heddle {
  readonly port: number
  readonly url: string
  readonly process: ChildProcess
  /** Everything that it has logged so far. */
  readonly logs: LogLine[]
  /** Its standard error so far, and lines of the log that are no JSON. */
  readonly errors: string[]
  readonly directory: string
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** The parsed body of a request. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
  json(path: string, init?: RequestInit): Promise<{ status: number; headers: Headers; body: any }>
  /** Sends an object as JSON. @returns as `json` does */
  post(path: string, body?: unknown, headers?: Record<string, string>): ReturnType<Heddle['json']>
  /** Sends a signal and resolves with the exit code, once all that it has logged is in `logs`. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export interface StartOptions {
  /** Domain folders, absolute. Default: the shipped ones. */
  domains?: string[]
  lanes?: number
  env?: Record<string, string>
  /** The checkout that is run. Default: this one. */
  project?: string
  /** As `npm start`: under the guardian, which the process is then. */
  isGuarded?: boolean
  /** What starts it, in a process group of its own, instead of Node with the runtime: `npm`, `start`. */
  command?: readonly [program: string, ...args: string[]]
}

/** A test, or whatever else ends what it has started. */
export interface Owner {
  after(end: () => Promise<void>): void
}

/** Starts the runtime as `npm start` does and ends it with the test. */
export async function startHeddle(t: Owner, options: StartOptions = {}): Promise<Heddle> {
  const { child, logs, errors, directory } = await spawnHeddle(t, options)
  // Other processes of a guardian or a command may keep its output open.
  const end = options.isGuarded || options.command !== undefined ? 'exit' : 'close'
  const exited = once(child, end)
  exited.catch(() => {}) // Whoever stops it hears of it.
  const tail = (): string => `${errors.slice(-20).join('')}\n${JSON.stringify(logs.slice(-20))}`
  const serving = new Promise<number>((resolve, reject) => {
    const look = (): void => {
      const line = logs.find(({ msg }) => msg.startsWith('Serving on '))
      if (line !== undefined) resolve(Number(line.msg.split(':').at(-1)))
    }
    child.stdout!.on('data', look)
    child.on('exit', (code) =>
      reject(
        new Error(`The runtime ended with ${code} before it was ready\n${errors.join('')}\n${JSON.stringify(logs)}`),
      ),
    )
  })
  const port = await within(serving, () => `process ${child.pid} serves\n${tail()}`, START_MS)
  const url = `http://127.0.0.1:${port}`
  const doFetch = (path: string, init?: RequestInit): Promise<Response> => fetch(url + path, init)
  const json: Heddle['json'] = async (path, init) => {
    const response = await doFetch(path, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  return {
    port,
    url,
    process: child,
    logs,
    errors,
    directory,
    fetch: doFetch,
    json,
    post: (path, body = {}, headers = {}) =>
      json(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    stop: async (signal = 'SIGTERM') => {
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      child.kill(signal)
      await within(exited, () => `the end of process ${child.pid} after ${signal}\n${tail()}`, END_MS)
      const { exitCode, signalCode } = child
      // Who only looks at the code does not see what has ended it.
      if (exitCode === null && signalCode !== signal)
        console.error(
          `${hasEnded ? 'Before' : 'After'} ${signal} it ended by ${signalCode}\n${errors.slice(-20).join('')}`,
          logs.at(-1),
        )
      return exitCode
    },
  }
}

/** Spawns the process without waiting for it to be ready: for starts that fail. */
export async function spawnHeddle(t: Owner, options: StartOptions & { args?: string[] } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'heddle-test-'))
  if (isOver || over.has(t)) {
    await rm(directory, { recursive: true })
    throw new Error('The test has ended: nothing more is started for it')
  }
  const domains = options.domains ?? (options.project === undefined ? [SHIPPED] : undefined)
  const [program, ...args] = options.command ?? [
    process.execPath,
    ...(options.isGuarded
      ? ['--require', ORPHAN_GUARD, 'src/guardian.cjs']
      : ['--require', './src/preload.cjs', '--require', ORPHAN_GUARD, 'src/main.ts']),
    ...(options.args ?? []),
  ]
  const isGroup = options.command !== undefined
  const child = spawn(program, args, {
    cwd: options.project ?? ROOT,
    detached: isGroup,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      HTTP_PORT: '0',
      // The guardian starts production otherwise.
      ...(options.isGuarded ? { NODE_ENV: 'development' } : {}),
      // `npm test -- --listener node` tests that one.
      HTTP_LISTENER: process.env.HTTP_LISTENER,
      // `test` is the host of raw requests. In production a name that is none of this machine closes /system.
      HTTP_ALLOWED_HOSTS: options.env?.NODE_ENV === 'production' ? '' : '127.0.0.1,localhost,[::1],test',
      LANES: String(options.lanes ?? 2),
      LOG_FORMAT: 'json',
      ...(isGroup ? { npm_config_update_notifier: 'false' } : {}),
      SQLITE_PATH: join(directory, 'service.db'),
      CRASH_REPORTS_DIR: join(directory, 'crashes'),
      // One thread less for each start. `HISTORY_ENABLED=true npm test hostile` runs tests with it.
      HISTORY_ENABLED: process.env.HISTORY_ENABLED ?? 'false',
      // A test says which domains it has.
      ...(domains === undefined ? {} : { DOMAINS_DIR: domains.join(delimiter), SYSTEM_DOMAIN: 'false' }),
      ...options.env,
    },
  })
  running.add(child)
  child.on('exit', () => running.delete(child))
  const logs: LogLine[] = []
  const errors: string[] = []
  let rest = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      try {
        logs.push(JSON.parse(line) as LogLine)
      } catch {
        errors.push(line)
      }
    }
  })
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => errors.push(chunk))
  t.after(async () => {
    over.add(t)
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    if (isGroup) endGroup(child.pid!)
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  })
  return { child, logs, errors, directory }
}

function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}
