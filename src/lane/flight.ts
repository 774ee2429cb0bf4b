// Notes the steps of requests and deliveries in the flight recorder.

import type { WireError } from '../core/errors/wire.ts'
import type { DeliverySink } from '../runtime/events/event-server.ts'
import type { EventFrame } from '../transport/frames/event-frame.ts'
import { type RequestFrame, requestIdOf } from '../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_EVENT, STEP_REQUEST } from '../transport/memory/flight-recorder.ts'

/** Writes requests and messages of sockets of a lane into its flight recorder: a step when one begins, its end when it is answered. */
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

  endStep(step: number, failed: boolean): void {
    this.#recorder.end(step, Date.now(), failed)
  }
}

/** Steps that are found again when their deliveries end: more than a lane has in flight. */
const STEPS = 4096
const STEP_MASK = STEPS - 1
const EVENT_ID_PREFIX = 'evt_'.length

/** Writes the deliveries to a lane into its flight recorder: a step when one begins, its end when it is answered. */
export class RecordedDeliveries implements DeliverySink {
  readonly #recorder: FlightRecorder
  readonly #sink: DeliverySink
  /** Number of the step of each delivery. */
  readonly #steps = new Int32Array(STEPS)

  /** @param sink where the answers go on to */
  constructor(recorder: FlightRecorder, sink: DeliverySink) {
    this.#recorder = recorder
    this.#sink = sink
  }

  begin(deliveryId: number, { id, subscriber }: EventFrame): void {
    const eventId = id.slice(EVENT_ID_PREFIX)
    const step = this.#recorder.begin(STEP_EVENT, subscriber, deliveryId, eventId, Date.now())
    this.#steps[deliveryId & STEP_MASK] = step
  }

  #end(deliveryId: number, failed: boolean): void {
    this.#recorder.endFrame(this.#steps[deliveryId & STEP_MASK]!, deliveryId, Date.now(), failed)
  }

  delivered(deliveryId: number): void {
    this.#end(deliveryId, false)
    this.#sink.delivered(deliveryId)
  }

  reply(deliveryId: number, json: string): void {
    this.#end(deliveryId, false)
    this.#sink.reply(deliveryId, json)
  }

  failed(deliveryId: number, error: WireError): void {
    this.#end(deliveryId, true)
    this.#sink.failed(deliveryId, error)
  }
}
