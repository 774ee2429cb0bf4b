// Moves events of an older release into the streams: it kept delayed events, and events behind dead letters, elsewhere in Redis.
import { eventOf } from '../../runtime/redis-streams/keys.ts'
import { SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Maximum number of events of one step: it blocks the server. */
const BATCH = 32
/** Pause before a member that cannot be moved is tried again, milliseconds. */
const POSTPONE_MS = 60_000

/** Moves delayed events that are due into their streams. A process of the older release may add more while it runs. */
export async function releaseDelayed(redis: RedisClient): Promise<void> {
  while ((await redis.run<number>(SCRIPTS.releaseDelayed, ['heddle:delayed'], [BATCH, POSTPONE_MS])) === BATCH) {
    // There may be more.
  }
}

/** Returns events of a stream from behind dead letters. */
export async function releaseAside(redis: RedisClient, stream: string): Promise<void> {
  const event = eventOf(stream)
  const args = [`heddle:aside:${event} `, BATCH]
  while ((await redis.run<number>(SCRIPTS.releaseAside, [stream, `heddle:places:${event}`], args)) === 1) {
    // There may be more.
  }
}
