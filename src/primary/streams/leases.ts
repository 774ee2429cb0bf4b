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

/**
 * Releases pending entries of a consumer, so that the next replica that claims gets them at once, whatever idle time it waits for.
 * For a graceful stop; end the renewal of this consumer's lease first.
 * @param ids entries that are no longer this consumer's are left alone
 * @returns the ids that were released
 */
export function releaseEntries(
  redis: RedisClient,
  stream: string,
  group: string,
  consumer: string,
  ids: readonly string[] | 'all',
): Promise<string[]> {
  return moveEntries(redis, stream, group, consumer, consumer, RELEASED_IDLE_MS, ids)
}

/**
 * Moves pending entries from one consumer to another. Their idle time starts again, their delivery count stays.
 * @returns the ids that were moved, without those that `from` no longer had
 */
export function handOver(
  redis: RedisClient,
  stream: string,
  group: string,
  ids: readonly string[] | 'all',
  from: string,
  to: string,
): Promise<string[]> {
  return moveEntries(redis, stream, group, from, to, 0, ids)
}

async function moveEntries(
  redis: RedisClient,
  stream: string,
  group: string,
  from: string,
  to: string,
  idleMs: number,
  ids: readonly string[] | 'all',
): Promise<string[]> {
  if (ids.length === 0) return []
  try {
    return await redis.run(SCRIPTS.moveEntries, [stream], [group, from, to, idleMs, ...(ids === 'all' ? [] : ids)])
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}
