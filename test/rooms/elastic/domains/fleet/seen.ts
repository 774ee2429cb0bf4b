import type { Db, EventMeta, Payload } from '#heddle'

/** Writes down that a subscriber has handled an event: once for each row. */
export async function writeSeen(
  db: Db,
  replica: string,
  data: Payload,
  { id, event, attempt, parent_id, request_id }: EventMeta,
): Promise<void> {
  await db.execute(
    'INSERT INTO fleet_seen (event_id, event, number, replica, attempt, parent_id, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7)',
    [id, event, Number(data.number ?? -1), replica, attempt, parent_id, request_id],
  )
}
