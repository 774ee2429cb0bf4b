import { z } from 'zod'
import { HeddleError, HttpError, plugin } from '#heddle'
import { jobsReport, runNow, runsOf } from '../job-reports.ts'
import { tellOperatorAct } from '../operator-acts.ts'

/** Runs that are shown, unless `limit` says otherwise. */
const RUNS_SHOWN = 20

const job = z
  .string()
  .regex(/^[^/]{1,200}\/.{1,200}$/s, 'Expected a job: <plugin>/<name>')
  .meta({ description: '`<plugin>/<name>`', examples: ['shop.ReportSales/nightly'] })
const query = z.object({ job, limit: z.coerce.number().int().min(1).max(100).default(RUNS_SHOWN) })
const body = z.object({ job })
const response = z.object({ success: z.literal(true), data: z.object({ id: z.string(), replica: z.string() }) })

/** Statuses by the code of the scheduler. */
const REFUSALS: Readonly<Record<string, number>> = { JOB_UNKNOWN: 404, JOB_RUNNING: 409, JOB_NOT_STARTED: 503 }

const tags = ['system']

/** Lists the jobs with their next runs and their last one, shows what came of the last runs, and runs one now. */
export default plugin(
  ({ http, registry, scheduler, event_bus, logger }) => {
    http.get(
      '/system/jobs',
      {
        tags,
        summary: 'Jobs: next runs and last run',
        description: 'The runs of the next hour: the first 20, and how many there are.',
      },
      () => jobsReport({ registry, scheduler }),
    )

    http.get(
      '/system/jobs/runs',
      {
        tags,
        query,
        throws: { 404: 'There is no such job and nothing is kept of one, or no history is kept' },
        summary: 'The last runs of a job',
        description: 'Newest first, each with what it has logged.',
      },
      async ({ job, limit }) => {
        const runs = await runsOf({ registry, scheduler }, job, limit)
        if (runs === null) throw new HttpError(404, 'No history is kept: start the process with HISTORY_ENABLED=true')
        const isKnown =
          runs.length > 0 || (await scheduler.list()).some((each) => `${each.plugin}/${each.name}` === job)
        if (!isKnown) throw new HttpError(404, `There is no job ${job}: GET /system/jobs lists them`)
        return { job, runs }
      },
    )

    http.post(
      '/system/jobs/run',
      {
        tags,
        body,
        response,
        status: 202,
        throws: { 404: 'There is no such job', 409: 'It is running', 503: 'It cannot run now' },
        summary: 'Runs a job now',
        description: 'Once, in the process that runs the jobs. It answers when the run has begun, with its id.',
      },
      async ({ job }, context) => {
        const askedBy = `${context.operator ?? 'anyone'} from ${context.ip}`
        try {
          const data = await runNow(scheduler, job, askedBy)
          await tellOperatorAct({ event_bus, logger }, { action: 'job.run', target: job }, context)
          return { success: true as const, data }
        } catch (error) {
          const status = error instanceof HeddleError ? REFUSALS[error.code] : undefined
          if (status === undefined) throw error
          const { code, message } = error as HeddleError
          throw new HttpError(status, message, { code })
        }
      },
    )
  },
  { thread: 'primary' },
)
