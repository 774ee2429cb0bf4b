// Jobs as people see them: when they run next, and what came of their last runs.
import {
  HeddleError,
  type JobInfo,
  type NotedRun,
  type RequestSummary,
  type StartedRun,
  type Tools,
  type WorkPart,
} from '#heddle'

/** Jobs whose last run is looked up. */
const LAST_RUNS_MAX = 500
/** Lines of one run that are shown: the first ones. */
const LINES_MAX = 200

type Sources = Pick<Tools, 'registry' | 'scheduler'>

export interface RunWithLogs extends NotedRun {
  /** Null: they are in the history of the process that ran it, which this one cannot read. */
  logs: { at: string; level: string; message: string; fields?: Record<string, unknown> }[] | null
  logs_left_out: number
}

export interface JobReport extends Omit<JobInfo, 'noted'> {
  /** `<plugin>/<name>`, by which the other routes know it. */
  job: string
  /** Whose clocks a cron expression means; null for other schedules. */
  time_zone: string | null
  /** Null: none is kept. */
  last_run: NotedRun | null
}

export interface JobsReport {
  /** False: nothing is kept of runs. */
  has_history: boolean
  jobs: JobReport[]
}

/** All jobs, by plugin and name. */
export async function jobsReport({ registry, scheduler }: Sources): Promise<JobsReport> {
  const jobs = [...(await scheduler.list({ upcoming: true, noted: true }))].sort((a, b) =>
    nameOf(a) < nameOf(b) ? -1 : 1,
  )
  const asked = jobs.slice(0, LAST_RUNS_MAX).map((job) => registry.getRequests({ job: nameOf(job), limit: 1 }))
  const last = await Promise.all(asked).catch(nullIfOff)
  return {
    has_history: last !== null,
    jobs: jobs.map(({ noted = [], ...job }, n) => {
      const { schedule } = job
      return {
        job: nameOf(job),
        ...job,
        time_zone: schedule.kind === 'cron' ? (schedule.timeZone ?? 'UTC') : null,
        last_run: merged((last?.[n] ?? []).map(runReport), noted)[0] ?? null,
      }
    }),
  }
}

/** Begins a run of a job. @param job `<plugin>/<name>` @throws JOB_UNKNOWN, JOB_RUNNING, JOB_NOT_STARTED */
export function runNow(scheduler: Tools['scheduler'], job: string, askedBy: string): Promise<StartedRun> {
  // The name of a plugin has no slash.
  const at = job.indexOf('/')
  return scheduler.runNow(job.slice(at + 1), { plugin: job.slice(0, Math.max(0, at)), askedBy })
}

/** The last runs of a job, newest first, each with what it has logged. Null where no history is kept, and nobody has noted one. */
export async function runsOf(
  { registry, scheduler }: Sources,
  job: string,
  limit: number,
): Promise<RunWithLogs[] | null> {
  const [runs, jobs] = await Promise.all([
    registry.getRequests({ job, limit }).catch(nullIfOff),
    scheduler.list({ noted: true }),
  ])
  const noted = jobs.find((each) => nameOf(each) === job)?.noted ?? []
  if (runs === null && noted.length === 0) return null
  const bare = noted.map((run) => ({ ...run, logs: null, logs_left_out: 0 }))
  return merged<RunWithLogs>(await withLogs(registry, runs ?? []), bare).slice(0, limit)
}

/** The runs of the history, and those that only the database knows of, newest first. */
function merged<Run extends NotedRun>(kept: readonly Run[], noted: readonly Run[]): Run[] {
  const known = new Set(kept.map(({ id }) => id))
  return [...kept, ...noted.filter(({ id }) => !known.has(id))].sort(newestFirst)
}

const newestFirst = (a: NotedRun, b: NotedRun): number =>
  a.began_at < b.began_at ? 1 : a.began_at > b.began_at ? -1 : 0

function withLogs(registry: Tools['registry'], runs: readonly RequestSummary[]): Promise<RunWithLogs[]> {
  return Promise.all(
    runs.map(async (run) => {
      const detail = await registry.getRequest(run.id)
      const own = detail?.parts.find((part): part is WorkPart => part.type === 'work' && part.requestId === run.id)
      const lines = own?.calls.filter(({ tool }) => tool === 'logger') ?? []
      return {
        ...runReport(run),
        logs: lines.slice(0, LINES_MAX).map((line) => logLine(own!, line)),
        // Calls beyond the bound of the history may have been lines, too.
        logs_left_out: Math.max(0, lines.length - LINES_MAX) + (own?.callsLeftOut ?? 0),
      }
    }),
  )
}

const nameOf = ({ plugin, name }: JobInfo): string => `${plugin}/${name}`

type Line = WorkPart['calls'][number]

function logLine(
  { atMs }: WorkPart,
  { method, fromMs, message = '', fields }: Line,
): NonNullable<RunWithLogs['logs']>[number] {
  const at = new Date(atMs + fromMs).toISOString()
  return { at, level: method.toUpperCase(), message, ...(fields !== undefined && { fields }) }
}

function runReport({ id, at_ms, duration_ms, state, failed, error, lane, replica, user }: RequestSummary): NotedRun {
  return {
    id,
    began_at: new Date(at_ms).toISOString(),
    duration_ms,
    outcome: state === 'open' ? 'running' : state === 'unfinished' ? 'unfinished' : failed ? 'failed' : 'done',
    error,
    thread: lane === -1 ? 'primary' : lane,
    replica,
    asked_by: user,
  }
}

function nullIfOff(error: unknown): null {
  if (error instanceof HeddleError && error.code === 'HISTORY_OFF') return null
  throw error
}
