import { type RequestFrame, requestIdOf } from '../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_JOB, STEP_REQUEST } from '../transport/memory/flight-recorder.ts'

/** Writes requests, messages and jobs of a lane into its flight recorder: a step when one begins, its end when it is answered. */
export class LaneFlight {
  readonly #recorder: FlightRecorder
  /** Number of the step of the last request, by request slot. */
  readonly #requestSteps: number[] = []

  constructor(recorder: FlightRecorder) {
    this.#recorder = recorder
  }

  beginRequest(id: number, frame: RequestFrame): void {
    const requestId = requestIdOf(frame)
    this.#requestSteps[id & 0xffff] = this.#recorder.begin(STEP_REQUEST, frame.routeNumber, id, requestId, Date.now())
  }

  endRequest(id: number, failed: boolean): void {
    this.#recorder.endFrame(this.#requestSteps[id & 0xffff]!, id, Date.now(), failed)
  }

  /** A message of a socket, its opening or its close. @returns the step's number, for `endStep` */
  beginMessage(routeNumber: number, requestId: string): number {
    return this.#recorder.begin(STEP_REQUEST, routeNumber, -1, requestId, Date.now())
  }

  /** @returns the step's number, for `endStep` */
  beginJob(job: number): number {
    return this.#recorder.begin(STEP_JOB, job, -1, '', Date.now())
  }

  endStep(step: number, failed: boolean): void {
    this.#recorder.end(step, Date.now(), failed)
  }
}
