import type { EventMeta, Queryable } from '#heddle'

/** A subscriber that outlasts a restart of the database. */
export const PATIENT = { retries: 30, backoffMs: 50 }

/** The payload of all events here. */
export interface Order {
  number: number
  key: string
}

/** @param childId the event that its subscriber has published */
export async function noteHandled(to: Queryable, { number, key }: Order, event: EventMeta, childId: string | null) {
  await to.execute(
    'INSERT INTO handled (event_id, event, number, key, parent_id, request_id, child_id) VALUES ($1, $2, $3, $4, $5, $6, $7)',
    [event.id, event.event, number, key, event.parent_id, event.request_id, childId],
  )
}
