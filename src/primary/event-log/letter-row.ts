import { timeOrderedId } from '../../core/causality/ids.ts'
import { envelopeOf, keyColumnOf } from '../../runtime/event-log/event-rows.ts'
import { textOf } from '../../transport/frames/event-frame.ts'
import type { DeadRow } from '../../transport/log-changes.ts'
import type { FailedDelivery } from '../events/consumer.ts'

/** What a letter takes beside its texts, bytes: a guess. */
const LETTER_BYTES = 1024

/** The row of a letter that is to be stored. */
export function rowOf({ event, group, subscriber, error, attempts, blackBox, parks }: FailedDelivery): DeadRow {
  const box = blackBox === null ? null : JSON.stringify({ ...blackBox, steps: [] })
  const payload = textOf(event)
  const envelope = envelopeOf({ ...event, trace: event.producer })
  return {
    id: `dl_${timeOrderedId()}`,
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
    bytes: LETTER_BYTES + event.payload.length + envelope.length + 2 * error.length + (box?.length ?? 0),
    atMs: Date.now(),
  }
}
