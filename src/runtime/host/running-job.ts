// The argument of the handler of a job.
import type { JobRun, JobTime } from '../../contracts/scheduler.ts'
import { Claim } from '../events/claim.ts'

export class RunningJob extends Claim implements JobRun {
  readonly due: Date
  readonly attempt: number
  readonly fence: number
  readonly #name: string

  /** @param name of the job */
  constructor(name: string, { due, attempt, fence }: JobTime) {
    super()
    this.due = due
    this.attempt = attempt
    this.fence = fence
    this.#name = name
  }

  protected get what(): string {
    return `The run of ${this.#name}`
  }
}
