// The argument of the handler of a job.
import type { JobRun, JobTime } from '../../contracts/scheduler.ts'
import { Claim } from '../events/claim.ts'

export class RunningJob extends Claim implements JobRun {
  readonly id: string
  readonly askedBy: string | null
  readonly due: Date
  readonly attempt: number
  readonly fence: number
  readonly #name: string

  /** @param name of the job */
  constructor(name: string, { id, askedBy, due, attempt, fence }: JobTime) {
    super()
    this.id = id
    this.askedBy = askedBy
    this.due = due
    this.attempt = attempt
    this.fence = fence
    this.#name = name
  }

  protected get what(): string {
    return `The run of ${this.#name}`
  }
}
