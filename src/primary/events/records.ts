import type { DeliveryFailure, EventRecord, FailureListener } from '../../contracts/event-bus.ts'
import { causality } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { recordOf, TraceRing } from '../../runtime/events/trace-ring.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { FailedDelivery, SubscriberThread } from './consumer.ts'
import type { TraceFile } from './trace-file.ts'

export type RecordLog = (level: 'WARNING' | 'ERROR', message: string, fields?: Record<string, unknown>) => void

/** @param origin the thread that the record comes from: it has told its own listeners already */
export type RecordListener = (record: EventRecord, origin: SubscriberThread | null) => void

/** The records of the hub and their listeners: the trace of published events, and what has failed for good. */
export class Records {
  readonly #log: RecordLog
  readonly #traces = new TraceRing()
  #file: TraceFile | null = null
  readonly #listeners: RecordListener[] = []
  readonly #failureListeners: FailureListener[] = []

  constructor(log: RecordLog) {
    this.#log = log
  }

  /** @param subscribers the plugins that it goes to */
  published(event: EventFrame, subscribers: readonly string[], origin: SubscriberThread | null): void {
    const trace = {
      id: event.id,
      parentId: event.parentId,
      event: event.event,
      emitter: event.emitter,
      subscribers,
      payloadKeys: event.payloadKeys,
      timestampMs: event.timestampMs,
      requestId: event.requestId,
      trace: event.trace,
    }
    if (this.#traces.push(trace)) this.#file?.add(trace)
    if (this.#listeners.length === 0) return
    const record = recordOf(trace)
    // A copy: a listener may remove itself while it is told, as a stream client does that is cut off.
    for (const listener of [...this.#listeners]) listener(record, origin)
  }

  /** A delivery has failed for good. What a listener publishes is caused by the failed event. */
  failed({ event, subscriber, error, attempts, trace }: FailedDelivery): void {
    const failure: DeliveryFailure = { event: event.event, event_id: event.id, subscriber, error, attempts }
    causality.run({ eventId: event.id, requestId: event.requestId, trace, origin: null }, () =>
      tellAll(this.#failureListeners, failure, (thrown) =>
        this.#log('ERROR', `A failure listener threw; it is not reported again: ${messageOf(thrown)}`),
      ),
    )
  }

  /** Begins with the history of the process before, and writes its own for the next one. */
  keepHistory(file: TraceFile): void {
    this.#traces.restore(file.read())
    this.#file = file
  }

  /** Resolves when the history is written. */
  async close(): Promise<void> {
    await this.#file?.close()
  }

  addListener(listener: RecordListener): () => void {
    return added(this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return added(this.#failureListeners, listener)
  }

  history(): EventRecord[] {
    return this.#traces.records()
  }
}
