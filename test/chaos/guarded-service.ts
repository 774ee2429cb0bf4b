import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../support/folder.ts'
import { type LogLine, type Owner, spawnHeddle } from '../support/heddle.ts'
import { freePort } from '../support/port.ts'
import { SHIPPED } from '../support/shipped-domains.ts'
import { until } from '../support/until.ts'
import { HANDLERS } from './faults.ts'

const DOMAINS = fileURLToPath(new URL('./domains', import.meta.url))
/** Migrations for each database. */
const TABLES = fileURLToPath(new URL('./tables', import.meta.url))
/** Longer than a start takes on any machine. */
const START_MS = 120_000
/** Longer than a runtime takes to notice that its guardian is gone, and to drain. */
const ORPHAN_MS = 60_000
/** Plugins that abort the process, and that end their lane. Each is disabled at its third time, so they take turns. */
const ABORTERS = 40
const ABORT = "return { length: 'x'.repeat(2 ** 27).split('').length }"
const LOOK_MS = 20

interface ServiceOptions {
  lanes: number
  /** Whose tables it has. */
  database: 'sqlite' | 'postgres'
  /** Where the database is, and the events. */
  env: Record<string, string>
}

/** What `npm start` is to a user, on one database: it is started again whenever its guardian ends, as a supervisor would. */
export class GuardedService {
  readonly url: string
  readonly logs: LogLine[][] = []
  /** What went wrong with processes, not with data. */
  readonly faults: string[] = []
  /** The guardian ended by itself: too many deaths within a minute. */
  gaveUp = 0
  readonly #guard: Owner
  readonly #env: Record<string, string>
  readonly #domains: string[]
  readonly #lanes: number
  #guardian: ChildProcess | null = null
  /** The guardian is to end. */
  #isExpected = false
  #isOver = false
  readonly #seen = new Set<number>()
  #aborter = 0

  private constructor(guard: Owner, options: ServiceOptions & { port: number; folder: string; faulty: string }) {
    const { port, folder, faulty, lanes, database, env } = options
    this.#guard = guard
    this.url = `http://127.0.0.1:${port}`
    this.#domains = [DOMAINS, SHIPPED, join(TABLES, database), faulty]
    this.#lanes = lanes
    this.#env = {
      HTTP_PORT: String(port),
      SQLITE_PATH: join(folder, 'service.db'),
      CRASH_REPORTS_DIR: join(folder, 'crashes'),
      EVENT_BUS_DRIVER: 'database',
      ...env,
    }
    guard.after(() => this.#endAll())
  }

  static async start(guard: Owner, options: ServiceOptions): Promise<GuardedService> {
    const files: Record<string, string> = {}
    for (const [kind, body] of Object.entries(HANDLERS))
      files[`faulty/plugins/${kind}.js`] = plugin(`Do${kind}`, `/${kind}`, body)
    for (let n = 0; n < ABORTERS; n++) {
      files[`faulty/plugins/abort-${n}.js`] = plugin(`Abort${n}`, `/abort/${n}`, ABORT)
      files[`faulty/plugins/exit-${n}.js`] = plugin(`Exit${n}`, `/exit/${n}`, HANDLERS.exit)
    }
    const faulty = await folderOf(guard, files)
    const folder = await folderOf(guard, {})
    const service = new GuardedService(guard, { ...options, port: await freePort(), folder, faulty })
    await service.#spawn()
    await service.served()
    return service
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  async #spawn(): Promise<void> {
    const { child, logs, errors } = await spawnHeddle(this.#guard, {
      isGuarded: true,
      lanes: this.#lanes,
      domains: this.#domains,
      env: this.#env,
    })
    this.logs.push(logs)
    this.#guardian = child
    this.#isExpected = false
    child.once('exit', (code, signal) => {
      if (this.#isExpected || this.#isOver) return
      // The bound of the guardian: what starts it does not give up.
      if (errors.some((text) => text.includes('it is not started again'))) this.gaveUp++
      else this.faults.push(`the guardian ended by itself with ${signal ?? `code ${code}`}: ${errors.at(-1) ?? ''}`)
      void this.#spawn()
    })
  }

  /** The process of the runtime; null while there is none. */
  runtimePid(): number | null {
    const pid = this.#guardian?.pid
    if (pid === undefined) return null
    try {
      const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')[0])
      if (child === 0) return null
      this.#seen.add(child)
      return child
    } catch {
      // It ends at this moment.
      return null
    }
  }

  /** Resolves when requests are answered. */
  async served(): Promise<void> {
    const isServed = () =>
      this.fetch('/orders', { signal: AbortSignal.timeout(5000) }).then(
        () => true,
        () => false,
      )
    await until(isServed, 'the service serves', START_MS)
  }

  /** SIGKILL. @returns false when there was no process */
  killRuntime(): boolean {
    const pid = this.runtimePid()
    return pid !== null && signal(pid, 'SIGKILL')
  }

  /** Sends a request that ends the process, or its lane alone. */
  async abort(what: 'abort' | 'exit'): Promise<void> {
    const number = this.#aborter++ % ABORTERS
    await this.fetch(`/${what}/${number}`, { method: 'POST', signal: AbortSignal.timeout(5000) }).catch(() => {})
  }

  /** SIGTERM; and it is started again when it has ended. */
  async restart(): Promise<void> {
    const guardian = this.#guardian!
    this.#isExpected = true
    if (guardian.exitCode === null && guardian.signalCode === null) {
      const exited = once(guardian, 'exit')
      guardian.kill('SIGTERM')
      const [code, by] = await exited
      if (code !== 0) this.faults.push(`the guardian ended with ${by ?? `code ${code}`} after SIGTERM`)
    }
    await this.#spawn()
  }

  /** Resolves when there is a runtime that is not that one. */
  async replaced(before: number | null): Promise<void> {
    await until(() => ![null, before].includes(this.runtimePid()), 'another process', START_MS)
  }

  /** Ends the guardian and starts another when the runtime, too, is gone. */
  async killGuardian(isRuntimeToo: boolean): Promise<void> {
    const runtime = this.runtimePid()
    const guardian = this.#guardian!
    this.#isExpected = true
    if (guardian.exitCode === null && guardian.signalCode === null) {
      const exited = once(guardian, 'exit')
      guardian.kill('SIGKILL')
      if (isRuntimeToo && runtime !== null) signal(runtime, 'SIGKILL')
      await exited
    }
    if (runtime !== null && !(await isGone(runtime, ORPHAN_MS))) {
      this.faults.push(`a runtime was still there ${ORPHAN_MS / 1000} s after its guardian's end`)
      signal(runtime, 'SIGKILL')
    }
    await this.#spawn()
  }

  /** SIGTERM. @returns when both processes are gone */
  async stop(): Promise<void> {
    this.runtimePid()
    this.#isOver = true
    const guardian = this.#guardian!
    const exited = once(guardian, 'exit')
    guardian.kill('SIGTERM')
    const [code, by] = await exited
    if (code !== 0) this.faults.push(`the guardian ended with ${by ?? `code ${code}`} after SIGTERM`)
    for (const pid of this.#seen) {
      if (!(await isGone(pid, 0))) this.faults.push(`process ${pid} is left`)
    }
  }

  async #endAll(): Promise<void> {
    this.#isOver = true
    const runtime = this.runtimePid()
    this.#guardian?.kill('SIGKILL')
    if (runtime !== null) signal(runtime, 'SIGKILL')
  }
}

/** A plugin of its own for each: what one is blamed for does not keep the others from it. Other requests are in its lane when it strikes. */
const plugin = (name: string, path: string, body: string): string => `
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
export default class ${name} {
  constructor({ db, http }) {
    http.addEndpoint('${path}', 'POST', async () => {
      await pause(25)
      ${body}
    })
  }
}
`

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    // It has just ended by itself.
    return false
  }
}

/** A process that waits for its parent to read its exit code is gone, too. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

async function isGone(pid: number, withinMs: number): Promise<boolean> {
  const untilMs = performance.now() + withinMs
  while (isRunning(pid)) {
    if (performance.now() > untilMs) return false
    await sleep(LOOK_MS)
  }
  return true
}
