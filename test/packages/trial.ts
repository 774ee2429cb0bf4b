import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { ProcessGuard } from '../chaos/process-guard.ts'
import { type LogLine, spawnHeddle } from '../support/heddle.ts'
import { freePort } from '../support/port.ts'
import { RouteWatch } from '../support/route-watch.ts'
import { haveEnded, processTree, signalAll } from '../support/servers/process-tree.ts'
import { until } from '../support/until.ts'
import { type Holdings, holdingsOf, KINDS } from './holdings.ts'
import { beGood, usePackage, type Way } from './plugin.ts'

const ORPHAN_GUARD = fileURLToPath(new URL('../../bench/orphan-guard.cjs', import.meta.url))
const USER = 'pack.UsePackage'
/** What ends lanes between two looks: four deaths, one less than what sets a plugin aside, and two reloads, which end both lanes each: eight of them. */
const ROUNDS: readonly (readonly Way[])[] = [
  ['throw', 'endless loop', 'heap', 'throw'],
  ['endless loop', 'buffers', 'throw', 'heap'],
  ['endless loop', 'throw', 'buffers', 'endless loop'],
]
const RELOADS = 2
/** How far the thing has come when its lane ends. */
const AFTER_MS = [0, 1, 5, 20, 100]
const STALL_MS = 600
const MEMORY_MB = 256
const START_MAX_MS = 40_000
const WAIT_MAX_MS = 40_000
/** What leaves has so long to be gone. */
const LEAVE_MAX_MS = 8_000
const STOP_MAX_MS = 25_000
/** The watch opens and closes some. */
const OUR_CONNECTIONS = 3
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

export interface Outcome {
  /** Why it has not done its thing, or what stood in the way of a trial; null when all of it was done. */
  said: string | null
  /** Lanes that were ended. */
  ends: number
  /** How often the process was another one than before. */
  restarts: number
  /** The longest time without an answer of the innocent route, and its requests that failed, by status. */
  gapMs: number
  failures: Record<string, number>
  /** Innocent plugins that were named with proof, disabled or set aside. */
  blamed: string[]
  /** What the process had after its first use, and when all was over. */
  before: Holdings | null
  after: Holdings | null
  /** What was more after each round than after the one before, and by how much at least. */
  grew: Partial<Holdings>
  /** Processes that were there when the service had ended, and temporary files that were not after its first use. */
  left: { children: number; files: string[] }
  /** Exit code or signal after SIGTERM, and how long it took; null: it had to be killed. */
  stop: { code: number | string | null; ms: number } | null
  seconds: number
}

/**
 * Runs one package: a guarded service with an innocent plugin and one that uses the package.
 * @param thing the text of the module that does it
 * @param logFile gets what the service has logged
 * @param rounds of eight ends each
 */
export async function tryPackage(site: Site, thing: string, logFile: string, rounds = ROUNDS.length): Promise<Outcome> {
  const folder = mkdtempSync(join(site.folder, '.trial-'))
  try {
    return await new Trial(folder, site, thing).run(logFile, rounds)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

class Trial {
  readonly #folder: string
  readonly #temporary: string
  readonly #site: Site
  readonly #guard = new ProcessGuard()
  readonly #samples: Holdings[] = []
  /** Everything that it has started, as far as it was seen. */
  readonly #started = new Set<number>()
  /** Of the first use: a library may keep some there, always the same. */
  #filesBefore: ReadonlySet<string> = new Set()
  #logs: LogLine[] = []
  #errors: string[] = []
  #ends = 0
  #pid = 0
  #watch!: RouteWatch
  #isGone = (): boolean => false

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

  async run(logFile: string, rounds: number): Promise<Outcome> {
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
    let isExited = false
    const exited = once(child, 'exit') as Promise<[number | null, string | null]>
    void exited.then(() => {
      isExited = true
    })
    this.#isGone = () => isExited
    this.#watch = new RouteWatch(port, '/good')
    let said: string | null = null
    try {
      const isUp = await this.#watch.firstAnswer(() => isExited || performance.now() - begunMs > START_MAX_MS)
      if (!isUp)
        throw new Error(`It does not start: ${errors.join('').trim().slice(-500) || JSON.stringify(logs.at(-1))}`)
      this.#pid = JSON.parse((await this.#watch.get('/good'))!).pid
      this.#watch.start()
      await this.#useAndEnd(rounds)
    } catch (error) {
      said = (error as Error).message
    }
    const stopped = this.#watch.stop()
    this.#seeStarted()
    const stop = await this.#stop(child, exited)
    await stopped
    const left = await this.#leftBehind()
    writeFileSync(logFile, [...logs.map((line) => JSON.stringify(line)), ...errors].join('\n'))
    await this.#guard.end()
    return {
      said,
      ends: this.#ends,
      restarts: this.#watch.restarts,
      gapMs: Math.round(this.#watch.gapMs),
      failures: this.#watch.failures,
      blamed: this.#blamed(),
      before: this.#samples[0] ?? null,
      after: this.#samples.at(-1) ?? null,
      grew: this.#grown(),
      left,
      stop,
      seconds: Math.round((performance.now() - begunMs) / 1000),
    }
  }

  async #useAndEnd(rounds: number): Promise<void> {
    await this.#useInBoth()
    await this.#takeSample()
    let deaths = 0
    for (const ways of ROUNDS.slice(0, rounds)) {
      for (const way of ways) {
        void this.#watch.get(`/end?way=${encodeURIComponent(way)}&afterMs=${AFTER_MS[deaths % AFTER_MS.length]}`)
        deaths++
        await this.#until(() => this.#count(/ died: /) >= deaths, `death ${deaths}, by ${way}`)
        this.#ends++
        await this.#allUp()
        this.#seeStarted()
      }
      for (let n = 0; n < RELOADS; n++) {
        await this.#reload()
        this.#ends += 2
        await this.#useInBoth()
      }
      await this.#takeSample()
    }
    if (this.#count(/ died: /) !== deaths) throw new Error(`${this.#count(/ died: /)} lanes died, not ${deaths}`)
  }

  /** While the thing is under way. */
  async #reload(): Promise<void> {
    const reloads = this.#count(/^(?:Reloaded|Not reloaded)/)
    const uses = Array.from({ length: 4 }, () => this.#use())
    process.kill(this.#pid, 'SIGHUP')
    await this.#until(() => this.#count(/^(?:Reloaded|Not reloaded)/) > reloads, 'the reload')
    const refused = this.#logs.findLast(({ msg }) => /^Not reloaded/.test(msg))
    if (refused !== undefined) throw new Error(refused.msg)
    if ((await Promise.all(uses)).includes(null)) throw new Error('A use during a reload has failed')
  }

  /** Until each of two threads has done it. */
  async #useInBoth(): Promise<void> {
    const threads = new Set<number>()
    const use = async (): Promise<void> => {
      const used = await this.#use()
      if (used === null) throw new Error(this.#whyNot())
      threads.add(used.threadId)
    }
    await this.#until(async () => {
      await Promise.all([use(), use(), use()])
      return threads.size > 1
    }, 'both lanes')
  }

  async #use(): Promise<{ threadId: number } | null> {
    const text = await this.#watch.get('/use', WAIT_MAX_MS)
    return text === null ? null : JSON.parse(text)
  }

  #whyNot(): string {
    const line = this.#logs.findLast(({ level, msg }) => level >= 40 && !/GET \/good/.test(msg))
    return line === undefined
      ? 'It has no answer'
      : [line.msg, line.error ?? line.cause ?? ''].map(String).join(' ').trim().slice(0, 800)
  }

  async #lanes(): Promise<LaneInfo[]> {
    return JSON.parse((await this.#watch.get('/system/lanes')) ?? '[]')
  }

  #allUp(): Promise<void> {
    return this.#until(async () => {
      const lanes = await this.#lanes()
      const ready = lanes.filter(({ state }) => state === 'ready')
      return (
        ready.filter(({ role }) => role === 'regular').length === 2 &&
        lanes.every(({ state }) => state === 'ready' || state === 'idle')
      )
    }, 'all lanes')
  }

  /** When all threads that have been replaced are gone, or have had their time. */
  async #takeSample(): Promise<void> {
    await this.#until(
      async () => (await this.#lanes()).every(({ role, state }) => role === 'regular' || state === 'idle'),
      'no other lane',
    )
    const before = this.#samples[Math.min(1, this.#samples.length - 1)]
    const isEnough = (now: Holdings): boolean =>
      before !== undefined &&
      KINDS.every((kind) => now[kind] <= before[kind] + (kind === 'descriptors' ? OUR_CONNECTIONS : 0))
    let now = holdingsOf(this.#pid, this.#temporary)
    for (
      const endMs = performance.now() + (before === undefined ? 1_000 : LEAVE_MAX_MS);
      !isEnough(now) && performance.now() < endMs;
    ) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      now = holdingsOf(this.#pid, this.#temporary)
    }
    if (this.#samples.length === 0) this.#filesBefore = new Set(readdirSync(this.#temporary))
    this.#samples.push(now)
  }

  /** Beyond what the first round has left, which may be the process's own. */
  #grown(): Partial<Holdings> {
    const [, first, ...others] = this.#samples
    const grew: Partial<Holdings> = {}
    for (const kind of KINDS) {
      const steps = others.map((each, n) => each[kind] - (others[n - 1] ?? first!)[kind])
      if (steps.length > 1 && steps.every((step) => step > (kind === 'descriptors' ? OUR_CONNECTIONS : 0)))
        grew[kind] = Math.min(...steps)
    }
    return grew
  }

  #seeStarted(): void {
    for (const pid of processTree(this.#pid)) if (pid !== this.#pid && this.#pid !== 0) this.#started.add(pid)
  }

  async #stop(
    child: { kill(signal: NodeJS.Signals): boolean },
    exited: Promise<[number | null, string | null]>,
  ): Promise<Outcome['stop']> {
    const begunMs = performance.now()
    if (!this.#isGone()) child.kill('SIGTERM')
    const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), STOP_MAX_MS).unref())
    const outcome = await Promise.race([exited, late])
    if (outcome === undefined) return null
    return { code: outcome[1] ?? outcome[0], ms: Math.round(performance.now() - begunMs) }
  }

  async #leftBehind(): Promise<Outcome['left']> {
    const pids = [...this.#started]
    await haveEnded(pids, 2_000)
    const running: number[] = []
    for (const pid of pids) if (!(await haveEnded([pid], 0))) running.push(pid)
    signalAll(running, 'SIGKILL')
    return {
      children: running.length,
      files: readdirSync(this.#temporary).filter((file) => !this.#filesBefore.has(file)),
    }
  }

  #blamed(): string[] {
    const blamed = new Set<string>()
    for (const line of this.#logs) {
      const guilty = line.guilty as { plugin: string | null; evidence: string } | null | undefined
      if (guilty?.plugin && guilty.plugin !== USER && PROOF.has(guilty.evidence)) blamed.add(guilty.plugin)
      if (/good\.BeGood/.test(line.msg) && /isabled|et aside|left out/.test(line.msg)) blamed.add('good.BeGood')
    }
    return [...blamed]
  }

  #count(what: RegExp): number {
    return this.#logs.filter(({ msg }) => what.test(msg)).length
  }

  async #until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    await until(
      async () => {
        if (this.#isGone() || this.#watch.restarts > 0)
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
