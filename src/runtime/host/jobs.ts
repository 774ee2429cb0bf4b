// Runs jobs.
import type { JobDefinition, JobRun } from '../../contracts/scheduler.ts'
import type { CodeTracing, Origin, Work } from '../../contracts/tracing.ts'
import { causality } from '../../core/causality/context.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/trace-context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type FlightRecorder, STEP_JOB } from '../../transport/memory/flight-recorder.ts'

const WORK: Work = { kind: 'job', requestId: null, eventId: null }

/**
 * Runs a job once. It has no cause, so it begins a trace of its own while tracing is on.
 * @param origin null in the primary, which has no use for it: a context would cost all of its promises time
 */
export async function runJob(
  { name, handler, owner }: JobDefinition,
  run: JobRun,
  tracing: CodeTracing | null,
  origin: Origin | null,
): Promise<void> {
  if (tracing === null && origin === null) return void (await handler.call(owner.instance, run))
  const attributes = { 'heddle.plugin': owner.name, 'heddle.job': name }
  const span = tracing?.open(NO_TRACE_CONTEXT, `${owner.name}/${name}`, attributes, WORK) ?? null
  const cause = { eventId: null, requestId: null, trace: span, origin }
  try {
    await causality.run(cause, () => handler.call(owner.instance, run))
    span?.end()
  } catch (thrown) {
    span?.fail(thrown)
    throw thrown
  }
}

/** The jobs that the primary's clock starts in this thread. */
export class ThreadJobs {
  /** Those that are under way. */
  readonly running = new Set<Origin>()
  readonly #flight: FlightRecorder
  /** Records jobs; null without history and tracing. */
  tracing: CodeTracing | null = null

  constructor(flight: FlightRecorder) {
    this.#flight = flight
  }

  /** @param number of the job in this thread @returns why it failed, or null */
  async run(job: JobDefinition, number: number, run: JobRun): Promise<string | null> {
    let error: string | null = null
    const step = this.#flight.begin(STEP_JOB, number, -1, '', Date.now())
    const origin = { plugin: job.owner.name, handler: job.name }
    this.running.add(origin)
    try {
      await runJob(job, run, this.tracing, origin)
    } catch (thrown) {
      error = messageOf(thrown)
    }
    this.running.delete(origin)
    this.#flight.end(step, Date.now(), error !== null)
    return error
  }
}
