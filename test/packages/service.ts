import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { ProcessGuard } from '../chaos/process-guard.ts'
import { guiltIn } from '../support/guilt.ts'
import { type LogLine, spawnHeddle } from '../support/heddle.ts'
import { freePort } from '../support/port.ts'
import { RouteWatch } from '../support/route-watch.ts'
import { haveEnded, processTree, signalAll } from '../support/servers/process-tree.ts'
import { until } from '../support/until.ts'
import { type Holdings, holdingsOf } from './holdings.ts'
import { beGood, usePackage } from './plugin.ts'

const ORPHAN_GUARD = fileURLToPath(new URL('../../bench/orphan-guard.cjs', import.meta.url))
const USER = 'pack.UsePackage'
const STALL_MS = 600
const MEMORY_MB = 256
const START_MAX_MS = 40_000
export const WAIT_MAX_MS = 40_000
const STOP_MAX_MS = 25_000
/** Evidence that is proof. */
const PROOF = new Set(['stack', 'origin', 'alone'])

/** How heddle is started, and what its plugins import it as. */
export interface Site {
  /** Where its packages are found: folders are made below. */
  folder: string
  node: string
  /** Node's arguments that start it under its guardian. */
  start: readonly string[]
  env: Record<string, string>
  heddle: string
  /** A file that is preloaded, its text. */
  preload?: string | undefined
}

/** Exit code or signal after SIGTERM, and how long it took; null: it had to be killed. */
export type Stop = { code: number | string | null; ms: number } | null

/** A guarded service with an innocent plugin, which is watched, and one that uses a package. */
export class TriedService {
  readonly #folder: string
  readonly #temporary: string
  readonly #site: Site
  readonly #guard = new ProcessGuard()
  /** Everything that it has started, as far as it was seen. */
  readonly #started = new Set<number>()
  #logs: LogLine[] = []
  #errors: string[] = []
  #child!: { kill(signal: NodeJS.Signals): boolean }
  #exited!: Promise<[number | null, string | null]>
  #isGone = false
  pid = 0
  watch!: RouteWatch

  /** @param folder empty; gets its domains, and is where it and its plugins keep files */
  constructor(folder: string, site: Site, thing: string) {
    this.#folder = folder
    this.#site = site
    this.#temporary = join(folder, 'tmp')
    const files = {
      'domains/pack/thing.ts': thing,
      'domains/pack/plugins/use-package.ts': usePackage(site.heddle),
      'domains/good/plugins/be-good.ts': beGood(site.heddle),
    }
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, path, '..'), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    for (const path of ['tmp', 'own']) mkdirSync(join(folder, path))
    if (site.preload !== undefined) writeFileSync(join(folder, 'preload.cjs'), site.preload)
  }

  /** Resolves when the innocent route answers. @throws when it does not start */
  async start(): Promise<void> {
    const begunMs = performance.now()
    const port = await freePort()
    const { child, logs, errors } = await spawnHeddle(this.#guard, {
      command: [this.#site.node, '--require', ORPHAN_GUARD, ...this.#site.start],
      domains: [join(this.#folder, 'domains')],
      lanes: 2,
      project: this.#site.folder,
      env: {
        NODE_ENV: 'production',
        SYSTEM_DOMAIN: 'true',
        ...(this.#site.preload !== undefined && { NODE_OPTIONS: `--require ${join(this.#folder, 'preload.cjs')}` }),
        ...this.#site.env,
        TRIAL_FOLDER: join(this.#folder, 'own'),
        HTTP_PORT: String(port),
        TMPDIR: this.#temporary,
        LANE_STALL_MS: String(STALL_MS),
        LANE_MEMORY_MB: String(MEMORY_MB),
        HISTORY_ENABLED: 'false',
      },
    })
    this.#logs = logs
    this.#errors = errors
    this.#child = child
    this.#exited = once(child, 'exit') as Promise<[number | null, string | null]>
    void this.#exited.then(() => {
      this.#isGone = true
    })
    this.watch = new RouteWatch(port, '/good')
    const isHopeless = (): boolean => this.#isGone || performance.now() - begunMs > START_MAX_MS
    if (!(await this.watch.firstAnswer(isHopeless)))
      throw new Error(`It does not start: ${errors.join('').trim().slice(-500) || JSON.stringify(logs.at(-1))}`)
    this.pid = JSON.parse((await this.watch.get('/good'))!).pid
    this.watch.start()
  }

  /** Null when it has failed. */
  async use(): Promise<{ threadId: number } | null> {
    const text = await this.watch.get('/use', WAIT_MAX_MS)
    return text === null ? null : JSON.parse(text)
  }

  /** The last line of the log that tells of trouble. */
  whyNot(): string {
    const line = this.#logs.findLast(({ level, msg }) => level >= 40 && !/GET \/good/.test(msg))
    return line === undefined
      ? 'It has no answer'
      : [line.msg, line.error ?? line.cause ?? ''].map(String).join(' ').trim().slice(0, 800)
  }

  async lanes(): Promise<LaneInfo[]> {
    return JSON.parse((await this.watch.get('/system/lanes')) ?? '[]')
  }

  get holdings(): Holdings {
    return holdingsOf(this.pid, this.#temporary)
  }

  /** In its folder for them. */
  get temporaryFiles(): string[] {
    return readdirSync(this.#temporary)
  }

  reload(): void {
    process.kill(this.pid, 'SIGHUP')
  }

  /** What it has started is looked for when it has ended. */
  seeStarted(): void {
    for (const pid of processTree(this.pid)) if (pid !== this.pid && this.pid !== 0) this.#started.add(pid)
  }

  async stop(): Promise<Stop> {
    const begunMs = performance.now()
    if (!this.#isGone) this.#child.kill('SIGTERM')
    const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), STOP_MAX_MS).unref())
    const outcome = await Promise.race([this.#exited, late])
    return outcome === undefined
      ? null
      : { code: outcome[1] ?? outcome[0], ms: Math.round(performance.now() - begunMs) }
  }

  /** Ends what it has started that is there still. @returns how many those are */
  async endLeftBehind(): Promise<number> {
    const pids = [...this.#started]
    await haveEnded(pids, 2_000)
    const running: number[] = []
    for (const pid of pids) if (!(await haveEnded([pid], 0))) running.push(pid)
    signalAll(running, 'SIGKILL')
    return running.length
  }

  /** @param logFile gets what it has logged */
  async end(logFile: string): Promise<void> {
    writeFileSync(logFile, [...this.#logs.map((line) => JSON.stringify(line)), ...this.#errors].join('\n'))
    await this.#guard.end()
  }

  /** Innocent plugins that were named with proof, disabled or set aside. */
  blamed(): string[] {
    const blamed = new Set<string>()
    for (const line of this.#logs) {
      const guilty = guiltIn(line)
      if (guilty?.plugin && guilty.plugin !== USER && PROOF.has(guilty.evidence)) blamed.add(guilty.plugin)
      if (/good\.BeGood/.test(line.msg) && /isabled|et aside|left out/.test(line.msg)) blamed.add('good.BeGood')
    }
    return [...blamed]
  }

  /** Of lines that it has logged. */
  count(what: RegExp): number {
    return this.#logs.filter(({ msg }) => what.test(msg)).length
  }

  lastLine(what: RegExp): string | undefined {
    return this.#logs.findLast(({ msg }) => what.test(msg))?.msg
  }

  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    await until(
      async () => {
        if (this.#isGone || this.watch.restarts > 0)
          throw new Error(`The process has ended before ${what}: ${this.#whyEnded()}`)
        return condition()
      },
      what,
      WAIT_MAX_MS,
    )
  }

  #whyEnded(): string {
    const report = this.#logs.findLast(({ msg }) => /ended (?:by|with)|was killed|died/.test(msg))
    return `${report?.msg ?? ''} ${this.#errors.join('').slice(-600)}`.trim()
  }
}
