import type { WorkInFlight } from '../contracts/registry.ts'
import type { JobDefinition, JobInfo } from '../contracts/scheduler.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { JobClock, type JobClockOptions } from '../jobs/clock.ts'
import type { Lane } from '../lanes/lane.ts'

interface Run {
  lane: Lane
  plugin: string
  name: string
  startedMs: number
  resolve: () => void
  reject: (error: Error) => void
}

/** Fires the process's jobs: each once, in the primary or in one of the lanes that host its plugin. */
export class Jobs {
  readonly #clock: JobClock
  readonly #lanes: () => Lane[]
  readonly #local = new Map<string, JobDefinition>()
  readonly #runs = new Map<number, Run>()
  readonly #isAside: (plugin: string) => boolean
  #nextRun = 0

  /** @param isAside tells the plugins whose jobs wait for their next time */
  constructor(
    enabled: boolean,
    lanes: () => Lane[],
    isAside: (plugin: string) => boolean,
    log: JobClockOptions['log'],
  ) {
    this.#lanes = lanes
    this.#isAside = isAside
    this.#clock = new JobClock({ enabled, run: (key) => this.#run(key), log })
  }

  addLocal(job: JobDefinition): void {
    this.#local.set(keyOf(job.owner.name, job.name), job)
  }

  /** Takes away the jobs of a plugin of the primary that has failed. */
  dropLocal(plugin: string): void {
    for (const [key, { owner }] of this.#local) if (owner.name === plugin) this.#local.delete(key)
  }

  /** @param isRefused tells the plugins whose jobs do not run */
  addOf(lane: Lane, isRefused: (plugin: string) => boolean): void {
    for (const { plugin, name, schedule } of lane.manifest!.jobs) {
      if (isRefused(plugin)) continue
      this.#clock.add(keyOf(plugin, name), plugin, name, schedule)
    }
  }

  async #run(key: string): Promise<void> {
    const local = this.#local.get(key)
    if (local !== undefined) {
      await local.handler.call(local.owner.instance)
      return
    }
    let best: { lane: Lane; job: number } | undefined
    for (const lane of this.#lanes()) {
      const job = lane.manifest!.jobs.findIndex(({ plugin, name }) => keyOf(plugin, name) === key)
      if (job >= 0 && (best === undefined || lane.requestsInFlight < best.lane.requestsInFlight)) best = { lane, job }
    }
    if (best === undefined) throw new HeddleError('LANE_GONE', 'No lane that hosts this job is up')
    const { lane, job } = best
    const { plugin, name } = lane.manifest!.jobs[job]!
    if (this.#isAside(plugin)) throw new HeddleError('PLUGIN_SET_ASIDE', 'its plugin is set aside')
    const run = this.#nextRun++
    await new Promise<void>((resolve, reject) => {
      this.#runs.set(run, { lane, plugin, name, startedMs: Date.now(), resolve, reject })
      lane.post({ type: 'job', run, job })
    })
  }

  done(run: number, error: string | null): void {
    const open = this.#runs.get(run)
    this.#runs.delete(run)
    if (error === null) open?.resolve()
    else open?.reject(new Error(error))
  }

  /** Jobs that a lane is at. */
  worksOf(lane: Lane): WorkInFlight[] {
    const nowMs = Date.now()
    return [...this.#runs.values()]
      .filter((run) => run.lane === lane)
      .map(({ plugin, name, startedMs }) => ({ kind: 'job', name, plugin, id: null, for_ms: nowMs - startedMs }))
  }

  /** Takes away the lanes' jobs that none of them has any more. */
  keepHosted(lanes: readonly Lane[]): void {
    const hosted = new Set<string>()
    for (const { manifest } of lanes)
      for (const { plugin, name } of manifest?.jobs ?? []) hosted.add(keyOf(plugin, name))
    this.#clock.keep((key) => hosted.has(key) || this.#local.has(key))
  }

  laneGone(lane: Lane): void {
    for (const [run, open] of this.#runs) {
      if (open.lane !== lane) continue
      this.#runs.delete(run)
      open.reject(new HeddleError('LANE_GONE', 'The lane that ran this job died'))
    }
  }

  list(): JobInfo[] {
    return this.#clock.list()
  }
  /** The jobs of the primary are complete by now. */
  start(): void {
    for (const [key, { owner, name, schedule }] of this.#local) this.#clock.add(key, owner.name, name, schedule)
    this.#clock.start()
  }
  stop(): Promise<void> {
    return this.#clock.stop()
  }
}

const keyOf = (plugin: string, name: string): string => `${plugin}/${name}`
