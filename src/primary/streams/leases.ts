import { isNoGroup } from '../../runtime/streams/consumers.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** The idle time of what was put down: longer than anybody waits before claiming. */
const RELEASED_IDLE_MS = 86_400_000

export interface LeaseRenewal {
  renewed: number
  /** In hand, but cut from the stream meanwhile: nobody can be given them again. */
  cut: number
}

/**
 * The lease: what these consumers have in hand is not idle, so nobody claims it while they work at it.
 * Call it from a thread that no handler can block, more often than others claim.
 * @param minIdleMs what has been idle for less is left as it is; at least 1
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
 * Puts down what a consumer has in hand, so that whoever claims next gets it at once, however long he would wait otherwise.
 * For a graceful stop; end the renewal of this consumer's lease first.
 * @param ids those that are this consumer's no more are left alone
 * @returns the ids that were put down
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
 * Gives entries that one consumer has in hand to another; their idle time starts again, their delivery count stays.
 * @returns the ids that were handed over: not those that `from` had no more
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
