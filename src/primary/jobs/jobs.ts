// The jobs of the process: which there are, and the thread in which each runs.
import type { LostReason } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { JobDefinition, JobInfo, JobTime, ListOptions, NotedRun, StartedRun } from '../../contracts/scheduler.ts'
import type { CodeTracing, RunsRecorder } from '../../contracts/tracing.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { runJob } from '../../runtime/host/host.ts'
import { RunningJob } from '../../runtime/host/running-job.ts'
import type { JobFault } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import { POISON_DEATHS } from '../events/hub.ts'
import { AskedRuns, askForRun } from './job-asks.ts'
import {
  FailedJob,
  JobClock,
  type JobClockOptions,
  newRunId,
  notStarted,
  type RunEnd,
  unknownJob,
} from './job-clock.ts'
import { NotedRuns, readNoted } from './noted-runs.ts'
import { LeaderElection, StoredJobs } from './stored-jobs.ts'

/** A lane for a job, and the job's number there. */
interface Place {
  lane: Lane
  job: number
  plugin: string
  name: string
}

interface Run {
  lane: Lane
  plugin: string
  name: string
  id: string
  startedMs: number
  resolve: (end: RunEnd) => void
  reject: (error: Error) => void
}

export interface JobsOptions {
  enabled: boolean
  /** See `JobClockOptions`. */
  isByTest?: boolean
  /** The lanes that take work. */
  lanes: () => Lane[]
  /** True for a plugin whose jobs do not run for now. */
  isPaused: (plugin: string) => boolean
  /** The database that stores jobs: null where there is none, and while it is not open. */
  database: () => StoreDatabase | null
  /** REPLICA_ID. */
  replica: string
  /** False where no database ever stores jobs. */
  isStored: () => boolean
  log: JobClockOptions['log']
}

/** Runs the jobs of the process: each in one thread, the primary or one of the lanes that host its plugin. */
export class Jobs {
  readonly #clock: JobClock
  readonly #election: LeaderElection
  readonly #asks: AskedRuns
  readonly #options: JobsOptions
  #store: StoredJobs | null = null
  /** Null on a file, and while another process runs the jobs. */
  #noted: NotedRuns | null = null
  #startedMs = 0
  readonly #local = new Map<string, JobDefinition>()
  /** In lanes. */
  readonly #runs = new Map<number, Run>()
  readonly #localRuns = new Set<RunningJob>()
  #nextRun = 0
  /** Null while tracing is off. */
  tracing: CodeTracing | null = null
  /** Null while no history is kept. */
  history: RunsRecorder | null = null

  constructor(options: JobsOptions) {
    const { enabled, isByTest = false, database, replica, log } = options
    this.#options = options
    this.#clock = new JobClock({
      enabled,
      isByTest,
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
        this.#noted = null
        this.lose('moved')
      },
      log,
    })
    this.#asks = new AskedRuns({
      database: () => (this.#clock.isRunning ? database() : null),
      replica,
      run: (key, asked) => this.#clock.runNow(key, asked),
      log,
    })
  }

  /** @param key `<plugin>/<job>` @throws JOB_UNKNOWN, JOB_RUNNING, JOB_NOT_STARTED, DbError */
  async runNow(key: string, askedBy: string): Promise<StartedRun> {
    if (!this.#clock.has(key)) throw unknownJob(key)
    const { replica, isStored, database } = this.#options
    const asked = { id: newRunId(), askedBy }
    if (this.#clock.isRunning) {
      await this.#clock.runNow(key, asked)
      return { id: asked.id, replica }
    }
    if (!isStored())
      throw notStarted(key, 'this process does not run jobs: SCHEDULER_ENABLED is false, or it starts or stops')
    const store = database()
    if (store === null) throw notStarted(key, 'the database cannot be used now')
    return { id: asked.id, replica: await askForRun(store, key, asked) }
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
      const { owner, name } = local
      return this.#recorded(owner.name, name, -1, of, this.#runLocal(local, of))
    }
    const place = this.#placeFor(key)
    if (place === null) return 'cut-off'
    const { plugin, name, lane } = place
    return this.#recorded(plugin, name, lane.index, of, this.#runThere(place, of))
  }

  /** Tells the history of a run that goes on for long, and of the end of one whose thread cannot tell. */
  async #recorded(plugin: string, name: string, lane: number, of: JobTime, work: Promise<RunEnd>): Promise<RunEnd> {
    const { id, askedBy } = of
    const recorded = this.history?.begin({ id, askedBy, plugin, name, lane })
    const noted = this.#noted?.begin(keyOf(plugin, name), {
      id,
      asked_by: askedBy,
      thread: lane < 0 ? 'primary' : lane,
      replica: this.#options.replica,
    })
    const over = (error: string | null, isCutOff: boolean): void => {
      recorded?.end(error, isCutOff)
      noted?.(error)
    }
    try {
      const end = await work
      over(end === 'done' ? null : `Its lane ${end === 'fatal' ? 'died' : 'ended'} in it`, end !== 'done')
      return end
    } catch (thrown) {
      over(messageOf(thrown), false)
      throw thrown
    }
  }

  #runThere({ lane, job, plugin, name }: Place, of: JobTime): Promise<RunEnd> {
    const run = this.#nextRun++
    return new Promise((resolve, reject) => {
      this.#runs.set(run, { lane, plugin, name, id: of.id, startedMs: steadyMs(), resolve, reject })
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
  #placeFor(key: string): Place | null {
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
      .map(({ plugin, name, id, startedMs }) => ({ kind: 'job', name, plugin, id, for_ms: nowMs - startedMs }))
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

  /** With what the options ask for. */
  async listWith({ upcoming = false, noted = false }: ListOptions = {}): Promise<JobInfo[]> {
    const [due, runs] = await Promise.all([
      upcoming && !this.#clock.isRunning ? this.#storedDue() : null,
      noted ? this.#notedRuns() : null,
    ])
    const jobs = this.#clock.list(upcoming, due)
    return runs === null ? jobs : jobs.map((job) => ({ ...job, noted: runs.get(keyOf(job.plugin, job.name)) ?? [] }))
  }

  async #notedRuns(): Promise<ReadonlyMap<string, NotedRun[]>> {
    const database = this.#options.database()
    // The runs of the file's one process are in its history.
    if (database?.dialect !== 'postgres') return new Map()
    try {
      return await readNoted(database)
    } catch {
      // The health of the database says so.
      return new Map()
    }
  }

  /** When the jobs are due that another process runs. */
  async #storedDue(): Promise<ReadonlyMap<string, number | null> | null> {
    const database = this.#options.database()
    if (database === null) return null
    try {
      const rows = await database.query<{ name: string; due_ms: number | null }>(
        'SELECT name, due_ms FROM heddle_job WHERE gone_ms IS NULL',
      )
      return new Map(rows.map(({ name, due_ms }) => [name, due_ms === null ? null : Number(due_ms)]))
    } catch {
      // The list says that it is not known.
      return null
    }
  }

  /** True while it is not known when jobs are due, and with `isWithRunning` while runs are under way. */
  isBusy(isWithRunning: boolean): boolean {
    return !this.#election.isKnown || this.#clock.isBusy(isWithRunning)
  }

  /** Starts the clock, or the election of the process whose clock runs. All jobs of the primary have been added by now. */
  start(): void {
    const { enabled, isStored } = this.#options
    for (const [key, { owner, name, schedule, missed }] of this.#local) {
      this.#clock.add(key, owner.name, name, schedule, missed)
    }
    if (!enabled) return
    if (!isStored()) return this.#clock.start()
    this.#asks.start()
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
      const noted = new NotedRuns({ database, fence, log })
      await noted.open()
      this.#noted = noted
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
    // A run that waits for the database gives up when the clock stops.
    const ended = this.#clock.stop()
    await this.#asks.stop()
    await ended
    await this.#noted?.stop()
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
