// A dead letter as a row.
import { envelopeOf, keyColumnOf } from '../../runtime/event-store/event-columns.ts'
import { textOf } from '../../transport/frames/event-frame.ts'
import type { DeadRow } from '../../transport/store-changes.ts'
import type { FailedDelivery } from '../events/consumer.ts'

/** Estimated size of a dead letter beside its texts, bytes. */
const OVERHEAD_BYTES = 1024

export function deadRowOf(
  { event, group, subscriber, error, attempts, blackBox, parks }: FailedDelivery,
  id: string,
  atMs: number,
): DeadRow {
  const box = blackBox === null ? null : JSON.stringify({ ...blackBox, steps: [] })
  const payload = textOf(event)
  const envelope = envelopeOf({ ...event, trace: event.producer })
  return {
    id,
    eventId: event.id,
    event: event.event,
    group,
    subscriber,
    key: keyColumnOf(event.key),
    envelope,
    payload,
    error,
    attempts,
    blackBox: box,
    isParked: parks,
    bytes: OVERHEAD_BYTES + event.payload.length + envelope.length + 2 * error.length + (box?.length ?? 0),
    atMs,
  }
}
