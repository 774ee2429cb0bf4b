import type { PublishOptions } from '../../contracts/event-bus.ts'
import { type CausalContext, causality } from '../../core/causality/context.ts'
import { makeEventId } from '../../core/causality/ids.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/trace-context.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

/**
 * A new event: it gets its id and its time.
 * @param payload in the form in which the next hop takes it (see EventFrame)
 * @param payloadKeys joined by U+0000
 * @param cause default: the running handler's
 */
export function publicationOf(
  emitter: string,
  event: string,
  payload: string,
  payloadKeys: string,
  options: PublishOptions,
  cause: CausalContext | undefined = causality.getStore(),
): EventFrame {
  return {
    id: makeEventId(),
    parentId: cause?.eventId ?? null,
    event,
    emitter,
    requestId: cause?.requestId ?? null,
    key: options.key ?? null,
    trace: cause?.trace?.traceContext ?? NO_TRACE_CONTEXT,
    payloadKeys,
    timestampMs: Date.now(),
    delayMs: options.delayMs ?? 0,
    ttlMs: options.ttlMs ?? 0,
    seq: 0,
    subscriber: 0,
    attempt: 0,
    payload,
  }
}
