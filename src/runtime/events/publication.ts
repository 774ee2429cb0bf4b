import type { PublishOptions } from '../../contracts/event-bus.ts'
import { causality } from '../../core/causality/context.ts'
import { makeEventId } from '../../core/causality/ids.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/trace-context.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

/**
 * A new event of the running handler: its id, its time, and what caused it.
 * @param payload in the form in which the next hop takes it (see EventFrame)
 * @param payloadKeys joined by U+0000
 */
export function publicationOf(
  emitter: string,
  event: string,
  payload: string,
  payloadKeys: string,
  options: PublishOptions,
): EventFrame {
  const context = causality.getStore()
  return {
    id: makeEventId(),
    parentId: context?.eventId ?? null,
    event,
    emitter,
    requestId: context?.requestId ?? null,
    key: options.key ?? null,
    trace: context?.trace?.traceContext ?? NO_TRACE_CONTEXT,
    payloadKeys,
    timestampMs: Date.now(),
    delayMs: options.delayMs ?? 0,
    ttlMs: options.ttlMs ?? 0,
    subscriber: 0,
    attempt: 0,
    payload,
  }
}
