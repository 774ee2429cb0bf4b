// Events that an older release kept in Redis outside of the streams: it did that with delayed ones, and with those behind dead letters.
import { eventOf } from '../../runtime/redis-streams/keys.ts'
import { SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Events that one step moves at most: it holds up the server. */
const BATCH = 32
/** When a member is tried again that cannot be moved, milliseconds. */
const POSTPONE_MS = 60_000

/** Moves delayed events that are due into their streams. A process of the older release may add more while it runs. */
export async function releaseDelayed(redis: RedisClient): Promise<void> {
  while ((await redis.run<number>(SCRIPTS.releaseDelayed, ['heddle:delayed'], [BATCH, POSTPONE_MS])) === BATCH) {
    // There may be more.
  }
}

/** Puts the events of a stream that waited behind dead letters back into it. */
export async function releaseAside(redis: RedisClient, stream: string): Promise<void> {
  const event = eventOf(stream)
  const args = [`heddle:aside:${event} `, BATCH]
  while ((await redis.run<number>(SCRIPTS.releaseAside, [stream, `heddle:places:${event}`], args)) === 1) {
    // There may be more.
  }
}
