// The jobs of the process: which there are, and the thread in which each runs.
import type { LostReason } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { JobDefinition, JobInfo, JobTime } from '../../contracts/scheduler.ts'
import type { CodeTracing } from '../../contracts/tracing.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { runJob } from '../../runtime/host/host.ts'
import { RunningJob } from '../../runtime/host/running-job.ts'
import type { JobFault } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import { POISON_DEATHS } from '../events/hub.ts'
import { FailedJob, JobClock, type JobClockOptions, type RunEnd } from './job-clock.ts'
import { LeaderElection, StoredJobs } from './stored-jobs.ts'

interface Run {
  lane: Lane
  plugin: string
  name: string
  startedMs: number
  resolve: (end: RunEnd) => void
  reject: (error: Error) => void
}

export interface JobsOptions {
  enabled: boolean
  /** The lanes that take work. */
  lanes: () => Lane[]
  /** True for a plugin whose jobs do not run for now. */
  isPaused: (plugin: string) => boolean
  /** The database that stores jobs: null where there is none, and while it is not open. */
  database: () => StoreDatabase | null
  /** False where no database ever stores jobs. */
  isStored: () => boolean
  log: JobClockOptions['log']
}

/** Runs the jobs of the process: each in one thread, the primary or one of the lanes that host its plugin. */
export class Jobs {
  readonly #clock: JobClock
  readonly #election: LeaderElection
  readonly #options: JobsOptions
  #store: StoredJobs | null = null
  #startedMs = 0
  readonly #local = new Map<string, JobDefinition>()
  /** In lanes. */
  readonly #runs = new Map<number, Run>()
  readonly #localRuns = new Set<RunningJob>()
  #nextRun = 0
  /** Null while tracing is off. */
  tracing: CodeTracing | null = null

  constructor(options: JobsOptions) {
    const { enabled, database, log } = options
    this.#options = options
    this.#clock = new JobClock({
      enabled,
      maxDeaths: POISON_DEATHS,
      obstacleTo: (key) => this.#obstacleTo(key),
      run: (key, run) => this.#run(key, run),
      onRefused: () => this.#election.doubt(),
      log,
    })
    this.#election = new LeaderElection({
      database,
      onElected: (...elected) => this.#lead(...elected),
      onLost: () => {
        this.#clock.standBy()
        this.lose('moved')
      },
      log,
    })
  }

  addLocal(job: JobDefinition): void {
    this.#local.set(keyOf(job.owner.name, job.name), job)
  }

  /** Removes the jobs of a plugin of the primary that has failed. */
  dropLocal(plugin: string): void {
    for (const [key, { owner }] of this.#local) if (owner.name === plugin) this.#local.delete(key)
  }

  /** @param isRefused true for a plugin whose jobs do not run */
  addOf(lane: Lane, isRefused: (plugin: string) => boolean): void {
    for (const { plugin, name, schedule, missed } of lane.manifest!.jobs) {
      if (isRefused(plugin)) continue
      this.#clock.add(keyOf(plugin, name), plugin, name, schedule, missed)
    }
  }

  #obstacleTo(key: string): string | null {
    if (this.#local.has(key)) return null
    const place = this.#placeFor(key)
    if (place === null) return 'no lane that hosts it is up'
    return this.#options.isPaused(place.plugin) ? 'its plugin is set aside' : null
  }

  async #run(key: string, of: JobTime): Promise<RunEnd> {
    const local = this.#local.get(key)
    if (local !== undefined) {
      return this.#runLocal(local, of)
    }
    const place = this.#placeFor(key)
    if (place === null) return 'cut-off'
    const { lane, job, plugin, name } = place
    const run = this.#nextRun++
    return new Promise((resolve, reject) => {
      this.#runs.set(run, { lane, plugin, name, startedMs: steadyMs(), resolve, reject })
      lane.post({ type: 'job', run, job, of })
    })
  }

  async #runLocal(job: JobDefinition, of: JobTime): Promise<RunEnd> {
    const run = new RunningJob(job.name, of)
    this.#localRuns.add(run)
    try {
      await runJob(job, run, this.tracing, null)
      return 'done'
    } catch (thrown) {
      if (run.isLost) return 'cut-off'
      throw thrown
    } finally {
      this.#localRuns.delete(run)
      run.ended()
    }
  }

  /** The handlers of all runs should end. */
  lose(reason: LostReason): void {
    for (const run of this.#localRuns) run.lose(reason)
    for (const [run, { lane }] of this.#runs) lane.post({ type: 'job-lost', run, reason })
  }

  /** The lane for a job, and the job's number there: a responsive lane, and of those the one with the fewest requests. */
  #placeFor(key: string): { lane: Lane; job: number; plugin: string; name: string } | null {
    let best: { lane: Lane; job: number } | undefined
    for (const lane of this.#options.lanes()) {
      const job = lane.manifest!.jobs.findIndex(({ plugin, name }) => keyOf(plugin, name) === key)
      if (job >= 0 && (best === undefined || isBetter(lane, best.lane))) best = { lane, job }
    }
    return best === undefined ? null : { ...best, ...best.lane.manifest!.jobs[best.job]! }
  }

  done(run: number, error: JobFault | null): void {
    const open = this.#runs.get(run)
    this.#runs.delete(run)
    if (error === null) open?.resolve('done')
    else if (error.isLost) open?.resolve('cut-off')
    else open?.reject(new FailedJob(error))
  }

  /** Jobs that run in a lane. */
  workInFlight(lane: Lane): WorkInFlight[] {
    const nowMs = steadyMs()
    return [...this.#runs.values()]
      .filter((run) => run.lane === lane)
      .map(({ plugin, name, startedMs }) => ({ kind: 'job', name, plugin, id: null, for_ms: nowMs - startedMs }))
  }

  /** The system's clock was set, or the machine was suspended. */
  clockJumped(): void {
    this.#clock.replan()
  }

  /** Removes jobs that no lane hosts any more. */
  keepHosted(lanes: readonly Lane[]): void {
    const hosted = new Set<string>()
    for (const { manifest } of lanes)
      for (const { plugin, name } of manifest?.jobs ?? []) hosted.add(keyOf(plugin, name))
    this.#clock.keep((key) => hosted.has(key) || this.#local.has(key))
    void this.#sweep()
  }

  /**
   * A lane is gone, and its runs with it.
   * @param blackBox null when it was told to end
   */
  laneGone(lane: Lane, blackBox: BlackBox | null): void {
    for (const [run, { lane: at, plugin, resolve }] of this.#runs) {
      if (at !== lane) continue
      this.#runs.delete(run)
      resolve(blackBox === null || isAnothers(plugin, blackBox) ? 'cut-off' : 'fatal')
    }
  }

  list(): JobInfo[] {
    return this.#clock.list()
  }

  /** Starts the clock, or the election of the process whose clock runs. All jobs of the primary have been added by now. */
  start(): void {
    const { enabled, isStored } = this.#options
    for (const [key, { owner, name, schedule, missed }] of this.#local) {
      this.#clock.add(key, owner.name, name, schedule, missed)
    }
    if (!enabled) return
    if (!isStored()) return this.#clock.start()
    this.#startedMs = Date.now()
    this.#clock.standBy()
    this.#election.start()
  }

  /** This process is the one that fires the jobs. @throws DbError */
  async #lead(database: StoreDatabase, fence: number, bootMs: number): Promise<void> {
    const { log } = this.#options
    const store = new StoredJobs({
      database,
      fence,
      bootMs,
      startedMs: this.#startedMs,
      maxAttempts: POISON_DEATHS,
      log,
    })
    await store.open()
    if (database.dialect === 'postgres') {
      log('INFO', `This process runs the jobs of all that share the database, until it ends (fence ${fence})`)
    }
    this.#store = store
    this.#clock.start(store)
    await this.#sweep()
  }

  /** Removes stored jobs that have not been registered for long. */
  async #sweep(): Promise<void> {
    try {
      await this.#store?.sweep((key) => this.#clock.has(key))
    } catch (error) {
      // The next election does it.
      this.#options.log('DEBUG', `Stored jobs that nobody registers are not removed now: ${messageOf(error)}`)
    }
  }

  async stop(): Promise<void> {
    await this.#clock.stop()
    await this.#election.stop()
  }
}

function isBetter(lane: Lane, other: Lane): boolean {
  if (lane.responsive !== other.responsive) return lane.responsive
  return lane.requestsInFlight < other.requestsInFlight
}

/** True when the stack names another plugin. */
function isAnothers(plugin: string, { guilty }: BlackBox): boolean {
  return guilty?.evidence === 'stack' && guilty.plugin !== null && guilty.plugin !== plugin
}

const keyOf = (plugin: string, name: string): string => `${plugin}/${name}`
