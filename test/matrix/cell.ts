import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { guiltIn } from '../support/guilt.ts'
import { type LogLine, spawnHeddle } from '../support/heddle.ts'
import { freePort } from '../support/port.ts'
import { RouteWatch } from '../support/route-watch.ts'
import { SYSTEM_ROUTES } from '../support/shipped-domains.ts'
import { openWebSocket } from '../support/web-socket.ts'
import type { Fault } from './faults.ts'
import type { Place } from './places.ts'
import { badPlugin, GOOD_PLUGIN, HASH_PLUGIN } from './plugin.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ORPHAN_GUARD = join(ROOT, 'bench/orphan-guard.cjs')
const BAD = 'bad.Plant'
/** How often the fault is asked for, and how long between. */
const ASKED = 3
const ASKED_EVERY_MS = 800
/** What is looked at after the last fault. */
const WATCHED_MS = 4_000
const STALL_MS = 2_000
const START_MAX_MS = 40_000
const HASH_AGAIN_MS = 20
const STOP_MAX_MS = 25_000
/** Descriptors of the process: enough for a service, few enough to be used up. */
const DESCRIPTORS = 1_024
/** Evidence that is proof. */
const PROOF = new Set(['stack', 'origin', 'alone'])

export interface Circumstances {
  lanes: number
  mode: 'production' | 'development'
  /** Another plugin has native calls in flight all the time. */
  isNative: boolean
}

export interface Cell extends Circumstances {
  place: string
  fault: string
  /** From the start of the process to the first answer of the innocent route; null: none came. */
  startMs: number | null
  /** The longest time without an answer of the innocent route, after the first. */
  gapMs: number
  /** Requests to the innocent routes that failed. */
  failed: number
  /** Of how many. */
  requests: number
  /** Who was named, and by which evidence: `bad.Plant stack`. */
  named: string[]
  /** Innocent plugins that were named with proof, disabled or set aside. */
  blamed: string[]
  /** How often the process was another one than before. */
  restarts: number
  /** Exit code or signal, and how long SIGTERM took; null: it had to be killed. */
  stop: { code: number | string | null; ms: number } | null
  /** Children of plugins that were there when the service had ended. */
  leftBehind: number
}

/** Runs one cell: a guarded service with an innocent plugin and one that fails. */
export async function runCell(place: Place, fault: Fault, circumstances: Circumstances): Promise<Cell> {
  // In the repository, where the packages are.
  const folder = mkdtempSync(join(ROOT, 'test/matrix/.run-'))
  try {
    return await new Trial(folder, place, fault, circumstances).run()
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

class Trial {
  readonly #folder: string
  readonly #place: Place
  readonly #fault: Fault
  readonly #circumstances: Circumstances
  readonly #asked: string
  readonly #mark: string
  readonly #ends: (() => Promise<void>)[] = []
  #lines: LogLine[] = []
  #startMs: number | null = null
  #failed = 0
  #requests = 0
  #isOver = false

  constructor(folder: string, place: Place, fault: Fault, circumstances: Circumstances) {
    this.#folder = folder
    this.#place = place
    this.#fault = fault
    this.#circumstances = circumstances
    this.#asked = join(folder, 'asked')
    this.#mark = `6${String(Date.now()).slice(-6)}.${process.pid % 1000}${Math.floor(Math.random() * 1000)}`
  }

  async run(): Promise<Cell> {
    const { lanes, mode, isNative } = this.#circumstances
    this.#write()
    const port = await freePort()
    const { child, logs } = await this.#spawn(port)
    this.#lines = logs
    const exited = once(child, 'exit') as Promise<[number | null, string | null]>
    let isExited = false
    void exited.then(() => {
      isExited = true
    })
    const begunMs = performance.now()
    const good = new RouteWatch(port, '/good')
    const hasServed = await good.firstAnswer(() => isExited || performance.now() - begunMs > START_MAX_MS)
    if (hasServed) this.#startMs = performance.now() - begunMs
    good.start()
    const hashes = isNative ? [this.#hash(good), this.#hash(good)] : []
    await pause(500)
    for (let n = 0; n < ASKED && this.#place.ask !== undefined; n++) {
      this.#ask(this.#place.ask, port, good)
      await pause(ASKED_EVERY_MS)
    }
    await pause(WATCHED_MS)
    this.#isOver = true
    await Promise.all(hashes)
    await good.stop()
    const stop = await this.#stop(child, exited, () => isExited)
    const { named, blamed } = this.#judged()
    for (const end of this.#ends) await end()
    return {
      place: this.#place.name,
      fault: this.#fault.name,
      lanes,
      mode,
      isNative,
      startMs: this.#startMs === null ? null : Math.round(this.#startMs),
      gapMs: Math.round(good.gapMs),
      failed: good.failed + this.#failed,
      requests: good.requests + this.#requests,
      named,
      blamed,
      restarts: good.restarts,
      stop,
      leftBehind: this.#killLeftBehind(),
    }
  }

  #write(): void {
    const files = {
      'bad/plugins/plant.ts': badPlugin(this.#place, this.#fault, this.#asked, this.#mark),
      'good/plugins/be-good.ts': GOOD_PLUGIN,
      ...(this.#circumstances.isNative && { 'good/plugins/hash-word.ts': HASH_PLUGIN }),
    }
    for (const [path, text] of Object.entries(files)) {
      const file = join(this.#folder, 'domains', path)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(file, text)
    }
  }

  #spawn(port: number) {
    const { lanes, mode } = this.#circumstances
    const command = `ulimit -n ${DESCRIPTORS}; exec ${process.execPath} --require ${ORPHAN_GUARD} src/guardian.cjs`
    return spawnHeddle(
      { after: (end) => void this.#ends.push(end) },
      {
        command: ['sh', '-c', command],
        domains: [join(this.#folder, 'domains'), SYSTEM_ROUTES],
        lanes,
        env: {
          NODE_ENV: mode,
          HTTP_PORT: String(port),
          LANE_STALL_MS: String(STALL_MS),
          LANE_MEMORY_MB: '192',
          HISTORY_ENABLED: 'false',
        },
      },
    )
  }

  async #hash(good: RouteWatch): Promise<void> {
    while (!this.#isOver) {
      this.#requests++
      if ((await good.get('/hash')) === null) {
        this.#failed++
        await pause(HASH_AGAIN_MS)
      }
    }
  }

  #ask({ path, how }: NonNullable<Place['ask']>, port: number, good: RouteWatch): void {
    writeFileSync(this.#asked, '')
    if (how === 'get') void good.get(path, 6_000)
    else void openWebSocket(port, path).catch(() => {})
  }

  async #stop(
    child: ChildProcess,
    exited: Promise<[number | null, string | null]>,
    isExited: () => boolean,
  ): Promise<Cell['stop']> {
    const begunMs = performance.now()
    if (!isExited()) child.kill('SIGTERM')
    const outcome = await Promise.race([exited, pause(STOP_MAX_MS)])
    const ms = Math.round(performance.now() - begunMs)
    if (outcome === undefined) {
      child.kill('SIGKILL')
      await exited
      return null
    }
    return { code: outcome[1] ?? outcome[0], ms }
  }

  #judged(): { named: string[]; blamed: string[] } {
    const named = new Set<string>()
    const blamed = new Set<string>()
    for (const line of this.#lines) {
      const guilty = guiltIn(line)
      if (guilty?.plugin) {
        named.add(`${guilty.plugin} ${guilty.evidence}`)
        if (guilty.plugin !== BAD && PROOF.has(guilty.evidence)) blamed.add(guilty.plugin)
      }
      const text = String(line.msg)
      if (text.includes(BAD)) named.add(`${BAD} log`)
      for (const innocent of ['good.BeGood', 'good.HashWord']) {
        if (text.includes(innocent) && /isabled|et aside|left out/.test(text)) blamed.add(innocent)
      }
    }
    return { named: [...named].sort(), blamed: [...blamed].sort() }
  }

  /** Ends the children that are still there. @returns how many there were */
  #killLeftBehind(): number {
    let count = 0
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(this.#mark)) continue
        process.kill(Number(pid), 'SIGKILL')
        count++
      } catch {
        // It has ended meanwhile.
      }
    }
    return count
  }
}

const pause = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(() => resolve(undefined), ms))
