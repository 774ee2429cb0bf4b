import type { LogDetails, LogLevel } from '../../contracts/logger.ts'
import { causality } from '../../core/causality/context.ts'
import type { LogRecord } from '../../transport/messages.ts'

/** A record of now, with the request and the event that are being handled here. */
export function newRecord(
  level: LogLevel,
  message: string,
  identity: string,
  fields: Record<string, unknown> | undefined,
): LogRecord {
  const record: LogRecord = { level, message, timestampMs: Date.now(), identity }
  if (fields !== undefined) record.fields = fields
  const cause = causality.getStore()
  if (cause === undefined) return record
  if (cause.requestId !== null) record.requestId = cause.requestId
  if (cause.eventId !== null) record.eventId = cause.eventId
  return record
}

const NONE: Readonly<Record<string, unknown>> = Object.freeze({})

/** What a sink is told besides the message. The runtime names the request of some records as a field, where it is not at work on it. */
export function detailsOf({ requestId, eventId, fields = NONE }: LogRecord): LogDetails {
  return {
    request_id: requestId ?? textOf(fields.request_id),
    event_id: eventId ?? textOf(fields.event_id),
    fields,
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
