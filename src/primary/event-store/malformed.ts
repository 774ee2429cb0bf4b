// Replaces rows that hold no event by dead letters: foreign or damaged rows.

import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { insertDeadLetters } from '../../runtime/event-store/dead-letter-rows.ts'
import { EMPTY_ENVELOPE } from '../../runtime/event-store/event-columns.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'

/** Maximum characters of a column in the dead letter. */
const SHOWN_MAX = 200

/** Replaces the row by a dead letter, so that other rows continue. @returns false if it is gone: a page that was read before has it, too */
export function buryRow(
  db: StoreDatabase,
  { chance, clock }: ThreadStore,
  seq: number,
  fault: string,
): Promise<boolean> {
  return ownTransaction(db, async (tx) => {
    const row = await tx.queryOne<Record<'event_id' | 'event' | 'envelope' | 'payload' | 'key', unknown>>(
      'SELECT event_id, event, envelope, payload, key FROM heddle_delivery WHERE seq = $1',
      [seq],
    )
    if (row === null) return false
    const payload = String(row.payload)
    const error = `It is no event, and nobody got it: ${fault} (heddle_delivery, seq ${seq}, envelope ${shown(row.envelope)}, key ${shown(row.key)})`
    const deadLetter = {
      id: `dl_${chance.id()}`,
      eventId: String(row.event_id),
      event: String(row.event),
      group: '',
      subscriber: '',
      key: null,
      envelope: EMPTY_ENVELOPE,
      payload,
      error,
      attempts: 0,
      blackBox: null,
      isParked: false,
      bytes: payload.length + error.length,
      atMs: clock.nowMs(),
    }
    await insertDeadLetters(tx, [{ row: deadLetter, seq, place: 0 }])
    return true
  })
}

const shown = (column: unknown): string => JSON.stringify(column)?.slice(0, SHOWN_MAX) ?? ''
