import { isNoGroup } from '../../runtime/streams/consumers.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** The idle time that released entries get: longer than any replica waits before it claims. */
const RELEASED_IDLE_MS = 86_400_000

export interface LeaseRenewal {
  renewed: number
  /** Pending entries that were cut from the stream meanwhile: nobody can get them again. */
  cut: number
}

/**
 * Renews the lease of these consumers on their pending entries: they are not idle, so no replica claims them.
 * Call it from a thread that no handler can block, more often than others claim.
 * @param minIdleMs entries that have been idle for less are left as they are; at least 1
 */
export async function renewLeases(
  redis: RedisClient,
  stream: string,
  group: string,
  consumers: readonly string[],
  minIdleMs: number,
): Promise<LeaseRenewal> {
  if (consumers.length === 0) return { renewed: 0, cut: 0 }
  try {
    const args = [group, Math.max(1, minIdleMs), ...consumers]
    const [renewed, cut] = await redis.run<[number, number]>(SCRIPTS.renewLeases, [stream], args)
    return { renewed, cut }
  } catch (fault) {
    if (isNoGroup(fault)) return { renewed: 0, cut: 0 }
    throw fault
  }
}

/** Pending entries of one consumer group. */
export interface PendingEntries {
  stream: string
  group: string
  ids: readonly string[] | 'all'
}

/**
 * Releases pending entries of a consumer, so that the next replica that claims gets them at once, whatever idle time it waits for.
 * For a graceful stop; end the renewal of this consumer's lease first. Entries that are no longer this consumer's are left alone.
 * @returns the ids that were released
 */
export function releaseEntries(redis: RedisClient, entries: PendingEntries, consumer: string): Promise<string[]> {
  return moveEntries(redis, entries, { from: consumer, to: consumer, idleMs: RELEASED_IDLE_MS })
}

/**
 * Moves pending entries from one consumer to another. Their idle time starts again, their delivery count stays.
 * @returns the ids that were moved, without those that `from` no longer had
 */
export function handOver(
  redis: RedisClient,
  entries: PendingEntries,
  { from, to }: { from: string; to: string },
): Promise<string[]> {
  return moveEntries(redis, entries, { from, to, idleMs: 0 })
}

async function moveEntries(
  redis: RedisClient,
  { stream, group, ids }: PendingEntries,
  { from, to, idleMs }: { from: string; to: string; idleMs: number },
): Promise<string[]> {
  if (ids.length === 0) return []
  try {
    return await redis.run(SCRIPTS.moveEntries, [stream], [group, from, to, idleMs, ...(ids === 'all' ? [] : ids)])
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}
