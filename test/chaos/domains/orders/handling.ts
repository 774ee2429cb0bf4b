import type { EventMeta, Queryable } from '#heddle'

/** So few attempts are over before a server that was killed is back: that it was away costs none of them. */
export const PATIENT = { retries: 4, backoffMs: 50 }

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
