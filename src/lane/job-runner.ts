import type { JobDefinition, JobRun } from '../contracts/scheduler.ts'
import type { CodeTracing } from '../contracts/tracing.ts'
import type { Origin } from '../core/causality/context.ts'
import { messageOf } from '../core/errors/description.ts'
import { runJob } from '../runtime/host/jobs.ts'
import type { ToPrimary } from '../transport/messages.ts'
import type { LaneFlight } from './flight.ts'

export interface JobRunnerOptions {
  /** By its number. */
  jobOf: (job: number) => JobDefinition
  flight: LaneFlight
  /** Records jobs; null without history and tracing. Asked at each run. */
  recorder: () => CodeTracing | null
  post: (message: ToPrimary) => void
}

/** Runs the jobs that the primary's clock starts in this lane, and reports their ends. */
export class JobRunner {
  /** The jobs that are under way. */
  readonly running = new Set<Origin>()
  readonly #options: JobRunnerOptions

  constructor(options: JobRunnerOptions) {
    this.#options = options
  }

  /** @param run the primary's number for this run */
  async run(run: number, job: number, of: JobRun): Promise<void> {
    const { jobOf, flight, recorder, post } = this.#options
    let error: string | null = null
    const step = flight.beginJob(job)
    const definition = jobOf(job)
    const origin = { plugin: definition.owner.name, handler: definition.name }
    this.running.add(origin)
    try {
      await runJob(definition, of, recorder(), origin)
    } catch (thrown) {
      error = messageOf(thrown)
    }
    this.running.delete(origin)
    flight.endStep(step, error !== null)
    post({ type: 'job-done', run, error })
  }
}
