import type { RedisClient } from '../../stores/redis/client.ts'
import { DELAYED, lastOfKey, streamOf } from './keys.ts'
import type { EntryFields } from './publishing.ts'
import { SCRIPTS } from './scripts.ts'

/** An event that is to wait. */
export interface DelayedPublication {
  /** The event's own id: a repeated call with it is the same publication. */
  readonly eventId: string
  readonly event: string
  /** Ordering key; it takes its place in the order when it is released. */
  readonly key: string | null
  readonly fields: EntryFields
}

/**
 * Keeps an event in the store until its time, by the store's clock. The call can be repeated with the same fields when its outcome is
 * unknown.
 * @returns false when it was kept already
 */
export async function delayEvent(
  redis: RedisClient,
  publication: DelayedPublication,
  delayMs: number,
): Promise<boolean> {
  const { eventId, event, key, fields } = publication
  const last = key === null ? '' : lastOfKey(event, key)
  return (await redis.run<number>(SCRIPTS.delay, [DELAYED], [delayMs, eventId, streamOf(event), last, ...fields])) === 1
}
