import type { RedisArgument, RedisClient } from '../../stores/redis/client.ts'
import { lastOfKey, streamOf } from './keys.ts'
import { SCRIPTS } from './scripts.ts'

/**
 * How long an ordering key is remembered after its last event, milliseconds. After that time the key starts again: an event that is
 * still pending then no longer delays those that come after it.
 */
export const LAST_OF_KEY_MS = 3_600_000

/** Names and values of the fields of an entry, alternating. */
export type EntryFields = readonly RedisArgument[]

/**
 * Adds an event with an ordering key. The entry names the one before it in its field `a`, when there is one.
 * A call that is repeated because its outcome is unknown may add the event twice; the second names the first.
 * @param maxLen cuts the stream to about so many entries, read or not
 * @returns the entry's id
 */
export function publishKeyed(
  redis: RedisClient,
  event: string,
  key: string,
  fields: EntryFields,
  maxLen?: number,
): Promise<string> {
  return redis.run(
    SCRIPTS.publishKeyed,
    [streamOf(event), lastOfKey(event, key)],
    [maxLen ?? '', LAST_OF_KEY_MS, ...fields],
  )
}

/**
 * Which of these entries the group has finished: it was given them, and they are no longer pending.
 * @throws a fault that `isNoGroup` recognises, when the stream or the group is not there
 */
export async function isAcknowledged(
  redis: RedisClient,
  stream: string,
  group: string,
  entryIds: readonly string[],
): Promise<boolean[]> {
  if (entryIds.length === 0) return []
  const answers = await redis.run<number[]>(SCRIPTS.acknowledged, [stream], [group, ...entryIds])
  return answers.map((answer) => answer === 1)
}
