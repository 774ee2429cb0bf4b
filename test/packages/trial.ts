import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Holdings, KINDS } from './holdings.ts'
import type { Way } from './plugin.ts'
import { type Site, type Stop, TriedService } from './service.ts'

/** What ends lanes between two looks: four deaths, one less than what sets a plugin aside, and two reloads, which end both lanes each: eight of them. */
const ROUNDS: readonly (readonly Way[])[] = [
  ['throw', 'endless loop', 'heap', 'throw'],
  ['endless loop', 'buffers', 'throw', 'heap'],
  ['endless loop', 'throw', 'buffers', 'endless loop'],
]
const RELOADS = 2
/** How far the thing has come when its lane ends. */
const AFTER_MS = [0, 1, 5, 20, 100]
/** What leaves has so long to be gone. */
const LEAVE_MAX_MS = 12_000
/** The watch opens and closes some. */
const OUR_CONNECTIONS = 3
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
  stop: Stop
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
    return await new Trial(new TriedService(folder, site, thing)).run(logFile, rounds)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

class Trial {
  readonly #service: TriedService
  readonly #samples: Holdings[] = []
  /** Of the first use: a library may keep some there, always the same. */
  #filesBefore: ReadonlySet<string> = new Set()
  #ends = 0

  constructor(service: TriedService) {
    this.#service = service
  }

  async run(logFile: string, rounds: number): Promise<Outcome> {
    const begunMs = performance.now()
    const service = this.#service
    let said: string | null = null
    try {
      await service.start()
      await this.#useAndEnd(rounds)
    } catch (error) {
      said = (error as Error).message
    }
    const { watch } = service
    const stopped = watch.stop()
    service.seeStarted()
    const stop = await service.stop()
    await stopped
    const children = await service.endLeftBehind()
    const files = service.temporaryFiles.filter((file) => !this.#filesBefore.has(file))
    await service.end(logFile)
    return {
      said,
      ends: this.#ends,
      restarts: watch.restarts,
      gapMs: Math.round(watch.gapMs),
      failures: watch.failures,
      blamed: service.blamed(),
      before: this.#samples[0] ?? null,
      after: this.#samples.at(-1) ?? null,
      grew: this.#grown(),
      left: { children, files },
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
        void this.#service.watch.get(
          `/end?way=${encodeURIComponent(way)}&afterMs=${AFTER_MS[deaths % AFTER_MS.length]}`,
        )
        deaths++
        await this.#service.until(() => this.#service.count(/ died: /) >= deaths, `death ${deaths}, by ${way}`)
        this.#ends++
        await this.#allUp()
        this.#service.seeStarted()
      }
      for (let n = 0; n < RELOADS; n++) {
        await this.#reload()
        this.#ends += 2
        await this.#useInBoth()
      }
      await this.#takeSample()
    }
    if (this.#service.count(/ died: /) !== deaths)
      throw new Error(`${this.#service.count(/ died: /)} lanes died, not ${deaths}`)
  }

  /** While the thing is under way. */
  async #reload(): Promise<void> {
    const reloads = this.#service.count(/^(?:Reloaded|Not reloaded)/)
    const uses = Array.from({ length: 4 }, () => this.#service.use())
    this.#service.reload()
    await this.#service.until(() => this.#service.count(/^(?:Reloaded|Not reloaded)/) > reloads, 'the reload')
    const refused = this.#service.lastLine(/^Not reloaded/)
    if (refused !== undefined) throw new Error(refused)
    if ((await Promise.all(uses)).includes(null)) throw new Error('A use during a reload has failed')
  }

  /** Until each of two threads has done it. */
  async #useInBoth(): Promise<void> {
    const threads = new Set<number>()
    const use = async (): Promise<void> => {
      const used = await this.#service.use()
      if (used === null) throw new Error(this.#service.whyNot())
      threads.add(used.threadId)
    }
    await this.#service.until(async () => {
      await Promise.all([use(), use(), use()])
      return threads.size > 1
    }, 'both lanes')
  }

  #allUp(): Promise<void> {
    return this.#service.until(async () => {
      const lanes = await this.#service.lanes()
      const ready = lanes.filter(({ state }) => state === 'ready')
      return (
        ready.filter(({ role }) => role === 'regular').length === 2 &&
        lanes.every(({ state }) => state === 'ready' || state === 'idle')
      )
    }, 'all lanes')
  }

  /** When all threads that have been replaced are gone, or have had their time. */
  async #takeSample(): Promise<void> {
    await this.#service.until(
      async () => (await this.#service.lanes()).every(({ role, state }) => role === 'regular' || state === 'idle'),
      'no other lane',
    )
    const [before] = this.#samples
    const isEnough = (now: Holdings): boolean =>
      before !== undefined &&
      KINDS.every((kind) => now[kind] <= before[kind] + (kind === 'descriptors' ? OUR_CONNECTIONS : 0))
    let now = this.#service.holdings
    for (
      const endMs = performance.now() + (before === undefined ? 1_000 : LEAVE_MAX_MS);
      !isEnough(now) && performance.now() < endMs;
    ) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      now = this.#service.holdings
    }
    if (this.#samples.length === 0) this.#filesBefore = new Set(this.#service.temporaryFiles)
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
}
