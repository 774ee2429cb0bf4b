import { type HrTime, isSpanContextValid, type Link, type TimeInput } from '@opentelemetry/api'
import { isTimeInput, timeInputToHrTime } from '@opentelemetry/core'
import type { SpanRecordLink } from '../encoding/span-record.ts'
import { traceContextOfSpan } from './span-context.ts'

/** Milliseconds since the epoch. */
export const msOfHrTime = ([seconds, nanoseconds]: HrTime): number => seconds * 1e3 + nanoseconds / 1e6

/** A time that a plugin gave, in milliseconds since the epoch; undefined for none. */
export function msOfTime(time: TimeInput | undefined): number | undefined {
  return isTimeInput(time) ? msOfHrTime(timeInputToHrTime(time)) : undefined
}

/** Null for a link without a valid span context. */
export function linkRecordOf({ context, attributes, droppedAttributesCount }: Link): SpanRecordLink | null {
  if (!isSpanContextValid(context)) return null
  return {
    traceContext: traceContextOfSpan(context),
    attributes: attributes ?? {},
    droppedAttributes: droppedAttributesCount ?? 0,
  }
}
