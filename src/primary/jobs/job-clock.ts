// The clock of the jobs: when each is due, and what becomes of its run.
import type { LogLevel } from '../../contracts/logger.ts'
import type { JobInfo, JobTime, Missed, Schedule, UpcomingRuns } from '../../contracts/scheduler.ts'
import { timeOrderedId } from '../../core/causality/ids.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf, messageWithCauses, stackOf } from '../../core/errors/description.ts'
import { placeInPlugin, placeText } from '../../core/errors/places.ts'
import { SYSTEM_CLOCK, type Timer } from '../../core/schedule/clock.ts'
import { firstDueMs, nextDueMs } from '../../core/schedule/cron.ts'
import { movedMs } from '../../core/schedule/moved-time.ts'
import { UPCOMING_MS, upcomingRuns } from '../../core/schedule/upcoming.ts'
import type { JobFault } from '../../transport/messages.ts'
import type { JobStore } from './stored-jobs.ts'

// Longer waits are taken in steps: Node's timers end at 2^31 ms, and a change of the wall clock is noticed within a minute.
const MAX_SLEEP_MS = 60_000
/** A job at a date that is due and cannot run is tried again this often, and so is the database that does not answer, milliseconds. */
const TRY_AGAIN_MS = 250
/** The same for a job that could not be stored. */
const PLACE_AGAIN_MS = 2000
/** How long a run that is asked for waits until its job is stored, and how often it looks, milliseconds. */
const PLACED_MS = 3000
const PLACED_LOOK_MS = 50

/** How a run ended that did not throw: `cut-off` when its thread was ended, `fatal` when its thread died and the job may be the cause. */
export type RunEnd = 'done' | 'cut-off' | 'fatal'

/** Told once whether a run has begun: null, or why it has not. */
type Begun = (fault: string | null) => void

/** A run that another process may have: it has not begun here. */
const UNCLAIMED = 'unclaimed'

/** A run that somebody has asked for. */
export interface Asked {
  /** Of the run. */
  id: string
  askedBy: string
}

export interface JobClockOptions {
  /** False on a replica that does not run jobs: they are listed and never fire. */
  enabled: boolean
  /** True where jobs become due by a time that a test moves, and not by themselves. */
  isByTest?: boolean
  /** A job at a date is given up when this many threads have died in it. */
  maxDeaths: number
  /** Why the job cannot run now; null when it can. */
  obstacleTo: (key: string) => string | null
  /** Runs the job in a thread that hosts its plugin. Rejects with the error of its handler. */
  run: (key: string, run: JobTime) => Promise<RunEnd>
  /** The store has refused: perhaps another process fires the jobs. */
  onRefused: () => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

interface Job {
  plugin: string
  name: string
  schedule: Schedule
  missed: Missed
  /** On the job's own clock (see `nowFor`); null: it will not run again. */
  dueMs: number | null
  /** One of its times on its own clock, and the same as milliseconds since the epoch, as it is stored. */
  anchor: { ownMs: number; atMs: number } | null
  timer: Timer | undefined
  running: Promise<void> | undefined
  runs: number
  failures: number
  skipped: number
  /** False while the store does not have it, where there is one. */
  isPlaced: boolean
  /** How often the run of a date has begun. */
  attempts: number
  /** Threads that died while they ran it. */
  deaths: number
  /** Why it did not run when it was last due; for a job at a date: what it waits for. */
  obstacle: string | null
  /** False when the job was removed while a run was still going. If the job comes back, that run counts as its own. */
  isWanted: boolean
}

/**
 * Fires the jobs of the process: one clock, in the primary.
 * A job never overlaps itself: a run that is due while the last one is still going counts as skipped.
 * Runs that were missed (a blocked thread, a machine asleep) are made up for by one run, not by all.
 * A run of a cron expression or an interval that cannot start, or is cut off, is skipped: the next one comes. A job at a date has no
 * next run: it is due until one run has ended, so its handler may be called more than once.
 * With a store each run is claimed there before it begins, and the clock runs only while this process is the one that fires jobs.
 */
export class JobClock {
  #options: JobClockOptions
  #jobs = new Map<string, Job>()
  /** `standby`: another process fires the jobs. */
  #status: 'idle' | 'standby' | 'started' | 'stopped' = 'idle'
  /** Null where jobs are kept in memory only. Another object each time that this process becomes the one that fires jobs. */
  #store: JobStore | null = null
  /** Questions to the store that it has not answered. */
  #asking = 0

  constructor(options: JobClockOptions) {
    this.#options = options
  }

  /**
   * Adds a job. Every lane that hosts the plugin adds it: the same key is the same job.
   * When a key comes again with another cron expression or interval (new code in a replaced lane), that one counts. A date stays, so
   * that a job at a date runs once.
   */
  add(key: string, plugin: string, name: string, schedule: Schedule, missed: Missed = 'skip'): void {
    const known = this.#jobs.get(key)
    if (known) {
      const isKept = known.isWanted || schedule.kind === 'at'
      known.isWanted = true
      known.missed = missed
      if (isKept && isSame(known.schedule, schedule)) return
      this.#cancel(known)
      known.schedule = schedule
      known.obstacle = null
    }
    const job = known ?? {
      plugin,
      name,
      schedule,
      missed,
      dueMs: null,
      anchor: null,
      timer: undefined,
      running: undefined,
      runs: 0,
      failures: 0,
      skipped: 0,
      isPlaced: false,
      attempts: 0,
      deaths: 0,
      obstacle: null,
      isWanted: true,
    }
    this.#jobs.set(key, job)
    if (this.#status === 'started') this.#begin(key, job)
  }

  /** Removes the jobs that are not wanted any more. A run that is under way goes on. */
  keep(isWanted: (key: string) => boolean): void {
    for (const [key, job] of this.#jobs) {
      if (isWanted(key)) continue
      this.#cancel(job)
      job.dueMs = null
      job.isWanted = false
      if (job.running === undefined) this.#jobs.delete(key)
    }
  }

  /** Starts the clock, or starts it again. A job that was due before runs once, now, unless the store knows better. */
  start(store: JobStore | null = null): void {
    if (this.#status === 'started' || this.#status === 'stopped' || !this.#options.enabled) return
    this.#status = 'started'
    this.#store = store
    for (const [key, job] of this.#jobs) this.#begin(key, job)
  }

  /** Another process fires the jobs, or may do so. Runs that are under way go on. */
  standBy(): void {
    if (this.#status === 'stopped' || !this.#options.enabled) return
    this.#status = 'standby'
    this.#store = null
    for (const job of this.#jobs.values()) {
      this.#cancel(job)
      job.dueMs = null
      job.obstacle = null
    }
  }

  /** No run starts any more. Resolves when the runs under way have ended: wait for it with a deadline. */
  async stop(): Promise<void> {
    this.#status = 'stopped'
    for (const job of this.#jobs.values()) {
      this.#cancel(job)
      if (job.schedule.kind === 'at' && job.obstacle !== null && job.dueMs !== null) this.#sayUndone(job)
      job.dueMs = null
    }
    await Promise.all([...this.#jobs.values()].map((job) => job.running))
  }

  /** True while the store is asked when jobs are due, or whether they may run, and with `isWithRunning` while runs are under way. */
  isBusy(isWithRunning: boolean): boolean {
    if (this.#asking > 0) return true
    return isWithRunning && [...this.#jobs.values()].some(({ running }) => running !== undefined)
  }

  /** True for a job that somebody registers. */
  has(key: string): boolean {
    return this.#jobs.get(key)?.isWanted === true
  }

  /** False on a process that does not run jobs, or not now. */
  get isRunning(): boolean {
    return this.#status === 'started'
  }

  /** Runs a job now. Resolves when the run has begun. @throws JOB_UNKNOWN, JOB_RUNNING, JOB_NOT_STARTED */
  async runNow(key: string, asked: Asked): Promise<void> {
    const job = this.#jobs.get(key)
    if (job === undefined || !job.isWanted) throw unknownJob(key)
    const isPlaced = (): boolean => this.#store === null || job.isPlaced || this.#status !== 'started'
    // Right after the start the jobs are being stored.
    for (let waitedMs = 0; !isPlaced() && waitedMs < PLACED_MS; waitedMs += PLACED_LOOK_MS)
      await new Promise((resolve) => setTimeout(resolve, PLACED_LOOK_MS))
    if (job.running !== undefined) {
      throw new HeddleError('JOB_RUNNING', `${nameOf(job)} is running, and a job never overlaps itself`)
    }
    const obstacle = this.#obstacleNow(key, job)
    if (obstacle !== null) throw notStarted(nameOf(job), obstacle)
    const { schedule, dueMs } = job
    if (schedule.kind === 'at') {
      // This is its run, and what comes after one that it has had begins anew.
      if (dueMs === null) job.attempts = 0
      this.#cancel(job)
      job.dueMs = null
      job.obstacle = null
    }
    const fault = await new Promise<string | null>((resolve) => this.#fire(key, job, nowFor(schedule), asked, resolve))
    if (fault === null) return
    if (schedule.kind === 'at' && this.#status === 'started' && job.dueMs === null && job.schedule === schedule) {
      // It is due when it was.
      job.dueMs = dueMs
      this.#sleep(key, job)
    }
    throw notStarted(nameOf(job), fault)
  }

  #obstacleNow(key: string, job: Job): string | null {
    if (this.#status !== 'started') return 'this process does not run jobs now'
    if (this.#store !== null && !job.isPlaced) return 'it is not stored yet'
    return this.#options.obstacleTo(key)
  }

  /** @param stored when the jobs are due, by their keys, where another process runs them; null: that is not known */
  list(withUpcoming = false, stored: ReadonlyMap<string, number | null> | null = null): JobInfo[] {
    const wanted = [...this.#jobs].filter(([, { isWanted }]) => isWanted)
    return wanted.map(([key, job]) => ({
      plugin: job.plugin,
      name: job.name,
      schedule: job.schedule,
      fires_here: this.#options.enabled && this.#options.isByTest !== true && this.#status !== 'standby',
      next_run: job.dueMs === null ? null : toIso(wallMs(job, job.dueMs)),
      runs: job.runs,
      failures: job.failures,
      skipped: job.skipped,
      running: job.running !== undefined,
      ...(withUpcoming && { upcoming: this.#upcomingOf(key, job, stored) }),
    }))
  }

  #upcomingOf(key: string, job: Job, stored: ReadonlyMap<string, number | null> | null): UpcomingRuns | null {
    const nowMs = Date.now()
    const untilMs = nowMs + UPCOMING_MS
    let dueMs = job.dueMs === null ? null : wallMs(job, job.dueMs)
    if (this.#status !== 'started') {
      const storedMs = stored?.get(key)
      if (storedMs === undefined) return null
      // On a file not every run is written: one that is stored may be over.
      const isOver = storedMs !== null && job.schedule.kind !== 'at' && storedMs < nowMs
      dueMs = isOver ? nextDueMs(job.schedule, storedMs, nowMs) : storedMs
    }
    const { runs, count, isMore } = upcomingRuns(job.schedule, dueMs, untilMs)
    return { runs: runs.map(toIso).filter((run) => run !== null), count, more: isMore, until: toIso(untilMs)! }
  }

  #begin(key: string, job: Job): void {
    job.attempts = 0
    if (this.#store !== null) return void this.#place(key, job, this.#store)
    const { schedule } = job
    job.dueMs = firstDueMs(schedule, nowFor(schedule))
    this.#sleep(key, job)
  }

  /** Learns from the store when the job is due. */
  async #place(key: string, job: Job, store: JobStore, isFirst = true): Promise<void> {
    const { schedule } = job
    const isCurrent = (): boolean => this.#isLed(store) && job.schedule === schedule && job.isWanted
    job.dueMs = null
    job.isPlaced = false
    // A date that is running is not one that was cut off.
    if (schedule.kind === 'at') await job.running
    if (!isCurrent()) return
    this.#asking++
    try {
      const placement = await store.place(key, job)
      if (!isCurrent()) return
      if (placement === null) return this.#options.onRefused()
      job.isPlaced = true
      job.attempts = placement.attempts
      const { dueMs } = placement
      job.dueMs = dueMs === null ? null : ownMs(schedule, dueMs)
      job.anchor = dueMs === null ? null : { ownMs: job.dueMs!, atMs: dueMs }
      this.#sleep(key, job)
    } catch (error) {
      if (!isCurrent()) return
      if (isFirst) this.#options.log('WARNING', `${nameOf(job)} cannot be stored and waits: ${messageOf(error)}`)
      job.timer = SYSTEM_CLOCK.after(PLACE_AGAIN_MS, () => {
        if (isCurrent()) void this.#place(key, job, store, false)
      })
    } finally {
      this.#asking--
    }
  }

  /** The wall clock was set: what it decides is planned anew. A time that comes a second time counts again; one that was skipped is made up for by one run. */
  replan(): void {
    if (this.#status !== 'started') return
    for (const [key, job] of this.#jobs) {
      if (job.dueMs === null || job.schedule.kind === 'every') continue
      this.#cancel(job)
      if (job.schedule.kind === 'cron') job.dueMs = earlier(job.dueMs, firstDueMs(job.schedule, Date.now()))
      this.#sleep(key, job)
    }
  }

  #isLed(store: JobStore): boolean {
    return this.#status === 'started' && this.#store === store
  }

  #sleep(key: string, job: Job): void {
    if (job.dueMs === null) return
    const wake = (): void => this.#wake(key, job)
    if (job.schedule.kind === 'at' && job.obstacle !== null) {
      job.timer = SYSTEM_CLOCK.after(TRY_AGAIN_MS, wake)
      return
    }
    const waitMs = Math.ceil(Math.max(0, job.dueMs - nowFor(job.schedule)))
    job.timer = SYSTEM_CLOCK.due(waitMs, wake, this.#options.isByTest ? Number.POSITIVE_INFINITY : MAX_SLEEP_MS)
  }

  #cancel({ timer }: Job): void {
    SYSTEM_CLOCK.cancel(timer)
  }

  #wake(key: string, job: Job): void {
    if (this.#status !== 'started' || job.dueMs === null) return
    // A timer may come a millisecond early: a run before its time would be followed by a second one.
    if (nowFor(job.schedule) >= job.dueMs) this.#due(key, job, job.dueMs)
    this.#sleep(key, job)
  }

  #due(key: string, job: Job, dueMs: number): void {
    const obstacle = job.running ? STILL_GOING : this.#options.obstacleTo(key)
    const isDate = job.schedule.kind === 'at'
    if (obstacle === null || !isDate) job.dueMs = nextDueMs(job.schedule, dueMs, nowFor(job.schedule))
    if (obstacle === null) {
      job.obstacle = null
      return this.#fire(key, job, dueMs)
    }
    if (!isDate) job.skipped++
    // Not each time that it is due: that may be a hundred times a second.
    if (job.obstacle === null && obstacle !== STILL_GOING) {
      this.#options.log('WARNING', `${nameOf(job)} is due and ${isDate ? 'waits' : 'is skipped'}: ${obstacle}`)
      const store = this.#store
      if (isDate && store !== null) void this.#insist(job, store, () => store.waits(key))
    }
    if (isDate || obstacle !== STILL_GOING) job.obstacle = obstacle
  }

  /** @param dueMs on the job's own clock @param asked null for a run by its schedule @param begun is told why it has not begun, or null */
  #fire(key: string, job: Job, dueMs: number, asked: Asked | null = null, begun: Begun = () => {}): void {
    const dueAtMs = wallMs(job, dueMs)
    job.running = this.#run(key, job, dueAtMs, asked, begun).then((end) => {
      job.running = undefined
      // Of a claim that has failed it was told why.
      if (end === UNCLAIMED) begun('another process runs the jobs now')
      if (!job.isWanted) this.#jobs.delete(key)
      else if (end === UNCLAIMED) return
      else if (end !== 'done') this.#lost(key, job, dueAtMs, end)
    })
  }

  async #run(
    key: string,
    job: Job,
    dueAtMs: number,
    asked: Asked | null,
    begun: Begun,
  ): Promise<RunEnd | typeof UNCLAIMED> {
    const { schedule } = job
    const store = this.#store
    const attempt = schedule.kind === 'at' ? job.attempts + 1 : 1
    if (store !== null) {
      const nextMs = job.dueMs === null ? null : wallMs(job, job.dueMs)
      const claim = { dueMs: dueAtMs, nextMs, attempt }
      const ask = (): Promise<boolean> => store.claim(key, job, claim)
      let isOurs: boolean
      try {
        // What somebody has asked for runs now, or not at all.
        isOurs = asked === null ? await this.#insist(job, store, ask) : await ask()
      } catch (error) {
        begun(`the database does not answer: ${messageOf(error)}`)
        return UNCLAIMED
      }
      if (!isOurs) {
        if (this.#isLed(store)) this.#options.onRefused()
        return UNCLAIMED
      }
    }
    if (schedule.kind === 'at') job.attempts = attempt
    job.runs++
    const { id, askedBy } = asked ?? { id: newRunId(), askedBy: null }
    const run = this.#runOnce(key, job, { id, askedBy, due: new Date(dueAtMs), attempt, fence: store?.fence ?? 0 })
    begun(null)
    const end = await run
    if (store !== null && schedule.kind === 'at' && end === 'done')
      await this.#insist(job, store, () => store.done(key))
    return end
  }

  async #runOnce(key: string, job: Job, run: JobTime): Promise<RunEnd> {
    try {
      return await this.#options.run(key, run)
    } catch (error) {
      job.failures++
      const { line, fix } = error instanceof FailedJob ? error.fault : {}
      const fields = { line: line ?? lineOf(error), fix, stack: stackOf(error) }
      this.#options.log('ERROR', `${nameOf(job)} failed: ${messageWithCauses(error)}`, fields)
      return 'done'
    }
  }

  /** Tries until the database answers. False when it says so, or this process is not the one any more. */
  async #insist(job: Job, store: JobStore, ask: () => Promise<unknown>): Promise<boolean> {
    this.#asking++
    try {
      return await this.#askUntilAnswered(job, store, ask)
    } finally {
      this.#asking--
    }
  }

  async #askUntilAnswered(job: Job, store: JobStore, ask: () => Promise<unknown>): Promise<boolean> {
    for (let failed = 0; ; failed++) {
      try {
        return (await ask()) !== false
      } catch (error) {
        if (failed === 0) this.#options.log('WARNING', `${nameOf(job)} waits for the database: ${messageOf(error)}`)
      }
      if (!this.#isLed(store)) return false
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS))
      if (!this.#isLed(store)) return false
    }
  }

  /** The run was cut off: a job at a date is tried again, unless it kills threads. */
  #lost(key: string, job: Job, dueMs: number, end: RunEnd): void {
    const { log, maxDeaths } = this.#options
    if (end === 'fatal') {
      job.deaths++
      job.failures++
    }
    const what = `${nameOf(job)}: its lane ${end === 'fatal' ? 'died' : 'ended'} in it`
    if (job.schedule.kind !== 'at') return log('ERROR', `${what}; it runs again when it is due next`)
    // New code has given it another date.
    if (job.dueMs !== null) return
    if (job.deaths >= maxDeaths) {
      const store = this.#store
      if (store !== null) void this.#insist(job, store, () => store.done(key))
      return log('ERROR', `${nameOf(job)} is given up: ${maxDeaths} lanes died in it`)
    }
    // It is tried where the jobs are fired now.
    if (this.#status === 'standby') return
    if (this.#status !== 'started') return this.#sayUndone(job)
    log('WARNING', `${what}; it is tried again`)
    job.dueMs = dueMs
    job.obstacle = 'its lane ended'
    this.#sleep(key, job)
  }

  #sayUndone(job: Job): void {
    this.#options.log(
      'WARNING',
      `${nameOf(job)} was due and has not come to its end: this process does not run it any more`,
    )
  }
}

/** The id of a run, in the history of requests. */
export const newRunId = (): string => `job_${timeOrderedId()}`

export const unknownJob = (key: string): HeddleError =>
  new HeddleError('JOB_UNKNOWN', `No plugin has registered the job ${key}: scheduler.list() has all of them`)

export const notStarted = (job: string, reason: string): HeddleError =>
  new HeddleError('JOB_NOT_STARTED', `${job} was not started: ${reason}`)

const earlier = (dueMs: number, otherMs: number | null): number => Math.min(dueMs, otherMs ?? dueMs)

/** The wall clock was moved, or has drifted, when it differs by so much, milliseconds. */
const MOVED_MS = 100
const STILL_GOING = 'its last run is still going'

const nameOf = ({ name, plugin }: Job): string => `Job ${name} of ${plugin}`

/** Intervals are measured on the monotonic clock, dates and cron expressions on the wall clock. */
function nowFor(schedule: Schedule): number {
  return schedule.kind === 'every' ? ageMs() : Date.now()
}

/** By the monotonic clock, and by how much a test has moved the time. */
const ageMs = (): number => performance.now() + movedMs()

/** A time in milliseconds since the epoch on a job's own clock. A date is itself, whether or not the clock turns meanwhile. */
const ownMs = ({ kind }: Schedule, atMs: number): number => (kind === 'every' ? atMs - Date.now() + ageMs() : atMs)

/** A time on a job's own clock as milliseconds since the epoch: on the grid that is stored, as long as nobody has moved the wall clock. */
function wallMs({ schedule, anchor }: Job, ms: number): number {
  if (schedule.kind !== 'every') return ms
  const atMs = Date.now() + ms - ageMs()
  const onGridMs = anchor === null ? atMs : anchor.atMs + ms - anchor.ownMs
  return Math.round(Math.abs(onGridMs - atMs) < MOVED_MS ? onGridMs : atMs)
}

/** Two dates count as the same: each lane that boots may compute its own from the current time. */
function isSame(a: Schedule, b: Schedule): boolean {
  return (a.kind === 'at' && b.kind === 'at') || JSON.stringify(a) === JSON.stringify(b)
}

/** Null for a date that JavaScript cannot write. */
function toIso(ms: number): string | null {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}

/** A job has failed in a lane: an error with the stack that it has there. */
export class FailedJob extends Error {
  readonly fault: JobFault

  constructor(fault: JobFault) {
    super(fault.message)
    this.fault = fault
    this.stack = fault.stack ?? fault.message
  }
}

function lineOf(error: unknown): string | undefined {
  const place = placeInPlugin(error)
  return place === undefined ? undefined : placeText(place)
}
