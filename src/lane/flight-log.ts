import type { EventFrame } from '../transport/frames/event-frame.ts'
import type { RequestFrame } from '../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_EVENT, STEP_JOB, STEP_REQUEST } from '../transport/memory/flight-recorder.ts'

/** Deliveries whose step is found again at their end: more than a lane has in flight. */
const EVENT_STEPS = 4096
const EVENT_MASK = EVENT_STEPS - 1
const EVENT_ID_PREFIX = 'evt_'.length

/** What a lane writes into its flight recorder of requests, events and jobs: a step when one begins, its end when it is answered. */
export class LaneFlight {
  readonly #recorder: FlightRecorder
  /** Number of the step of each request slot, and of each delivery: of the one that came last. */
  readonly #requestSteps: Int32Array
  readonly #eventSteps = new Int32Array(EVENT_STEPS)

  constructor(recorder: FlightRecorder, maxRequests: number) {
    this.#recorder = recorder
    this.#requestSteps = new Int32Array(maxRequests)
  }

  beginRequest(id: number, { text, requestIdLength, routeNumber }: RequestFrame): void {
    const requestId = text.slice(0, requestIdLength)
    this.#requestSteps[id & 0xffff] = this.#recorder.begin(STEP_REQUEST, routeNumber, id, requestId, Date.now())
  }

  endRequest(id: number, failed: boolean): void {
    this.#recorder.endFrame(this.#requestSteps[id & 0xffff]!, id, Date.now(), failed)
  }

  beginEvent(deliveryId: number, frame: EventFrame): void {
    const id = frame.id.slice(EVENT_ID_PREFIX)
    this.#eventSteps[deliveryId & EVENT_MASK] = this.#recorder.begin(
      STEP_EVENT,
      frame.subscriber,
      deliveryId,
      id,
      Date.now(),
    )
  }

  endEvent(deliveryId: number, failed: boolean): void {
    this.#recorder.endFrame(this.#eventSteps[deliveryId & EVENT_MASK]!, deliveryId, Date.now(), failed)
  }

  /** A message of a socket, or its beginning or end. @returns the step's number, for `endStep` */
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
