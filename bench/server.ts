import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/support/port.ts'
import type { CaseContext } from './bench-case.ts'
import { nextMessage } from './child.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const READY_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 15_000
const STDERR_TAIL_CHARS = 4_000
const HOST = '127.0.0.1'

/** A server under test, in a separate process on a free loopback port. */
export interface BenchServer {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly pid: number
  /** For the plan of a load: where it goes, and whose CPU time is read. */
  readonly target: { host: string; port: number; observedPid: number }
  /** Its temporary folder, with its database. */
  readonly directory: string
  /** Milliseconds from spawn to its `ready` message. */
  readonly bootMs: number
  /** Asks the server to drain, and kills it when it does not end. Removes its files. May be called twice. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Name of the server in results and profiles. */
  name: string
  /** Module that is run, relative to the repository. */
  script: string
  /** Added to the environment of this process. */
  env?: Record<string, string>
  /** Folder for CPU profiles: one per thread, written when the process ends. */
  profileDir?: string | undefined
  /** How long it may take to end by itself before it is killed. */
  stopTimeoutMs?: number
}

export interface HeddleOptions extends Partial<Pick<StartOptions, 'name' | 'env' | 'profileDir'>> {
  /** Of each process. */
  lanes: number
  /** Starts that many under the guardian. Default: one, without a guardian. */
  processes?: number
  /** Default: the shipped domains and the benchmark's own. */
  domains?: string[]
}

/** Starts a fresh server of each side of a comparison, by the side's name. */
export type Sides = Record<string, () => Promise<BenchServer>>

/** The runtime as one side of a comparison; none at all when only baselines are wanted. */
export function heddleSide(context: CaseContext, name: string, lanes: number, env: Record<string, string> = {}): Sides {
  if (context.baselinesOnly) return {}
  return { [name]: () => startHeddle({ name, lanes, env, profileDir: context.profileDir(name) }) }
}

/** A baseline as one side of a comparison. */
export function serverSide(
  context: CaseContext,
  name: string,
  script: string,
  more: Pick<StartOptions, 'env' | 'stopTimeoutMs'> = {},
): Sides {
  return { [name]: () => startServer({ name, script, profileDir: context.profileDir(name), ...more }) }
}

/** Starts the runtime with its default settings: no observability is turned off. */
export async function startHeddle({
  name = 'heddle',
  lanes,
  processes,
  domains = ['domains', 'bench/domains'],
  env,
  profileDir,
}: HeddleOptions): Promise<BenchServer> {
  const start = {
    LANES: String(lanes),
    ...(processes === undefined ? {} : { PROCESSES: String(processes), GUARDIAN: 'true' }),
    DOMAINS_DIR: domains.map((domain) => join(ROOT, domain)).join(delimiter),
  }
  const script = processes === undefined ? 'src/main.ts' : 'src/guardian.cjs'
  return startServer({ name, script, env: { ...start, ...env }, profileDir })
}

/** Starts a server and waits for its `ready` over IPC. @throws with the end of its stderr when it does not start */
export async function startServer(options: StartOptions): Promise<BenchServer> {
  const directory = mkdtempSync(join(tmpdir(), 'heddle-bench-'))
  const port = await freePort()
  const startedMs = performance.now()
  const child = fork(join(ROOT, options.script), {
    cwd: ROOT,
    execArgv: [
      ...['--require', join(ROOT, 'src/preload.cjs')],
      ...['--require', join(ROOT, 'bench/orphan-guard.cjs')],
      ...(options.profileDir ? ['--cpu-prof', `--cpu-prof-dir=${options.profileDir}`] : []),
    ],
    env: {
      ...process.env,
      NODE_ENV: 'production',
      HTTP_HOST: HOST,
      HTTP_PORT: String(port),
      HEDDLE_BENCH_DIR: directory,
      SQLITE_PATH: join(directory, 'bench.db'),
      ...options.env,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  live.set(child, directory)
  const stop = () => stopChild(child, options.stopTimeoutMs ?? STOP_TIMEOUT_MS)
  try {
    await untilReady(child, options.name)
  } catch (error) {
    await stop()
    throw error
  }
  const pid = child.pid!
  const target = { host: HOST, port, observedPid: pid }
  const bootMs = performance.now() - startedMs
  return { name: options.name, host: HOST, port, pid, target, directory, bootMs, stop }
}

export interface Asking {
  /** The JSON body; the request is a POST then. */
  post?: unknown
  /** The status that is expected. Default 200. */
  status?: number
}

/** One JSON request outside of any measurement. @throws when the answer has another status than expected */
export async function askJson<T>(server: BenchServer, path: string, { post, status = 200 }: Asking = {}): Promise<T> {
  const headers = { 'content-type': 'application/json' }
  const init = post === undefined ? {} : { method: 'POST', body: JSON.stringify(post), headers }
  const response = await fetch(`http://${server.host}:${server.port}${path}`, init)
  const text = await response.text()
  if (response.status !== status) throw new Error(`${server.name} answered ${path} with ${response.status}: ${text}`)
  return JSON.parse(text) as T
}

async function untilReady(child: ChildProcess, name: string): Promise<void> {
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_TAIL_CHARS)
  })
  const late = setTimeout(() => child.kill('SIGKILL'), READY_TIMEOUT_MS)
  try {
    while ((await nextMessage(child, name)) !== 'ready');
  } catch (error) {
    throw new Error(`${(error as Error).message}, before it was ready within ${READY_TIMEOUT_MS} ms: ${stderr}`)
  } finally {
    clearTimeout(late)
  }
}

async function stopChild(child: ChildProcess, timeoutMs: number): Promise<void> {
  const directory = live.get(child)
  if (directory === undefined) return
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const killer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    await exited
    clearTimeout(killer)
  }
  live.delete(child)
  rmSync(directory, { recursive: true, force: true })
}

/** Servers that still run, with their temporary folder. `orphan-guard.cjs` covers the case that this process is killed. */
const live = new Map<ChildProcess, string>()

process.on('exit', () => {
  for (const [child, directory] of live) {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
})
