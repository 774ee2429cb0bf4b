// Moves delayed events of an earlier checkout into the streams.
import { SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Maximum number of events of one step: it blocks the server. */
const BATCH = 32
/** Pause before a member that cannot be moved is tried again, milliseconds. */
const POSTPONE_MS = 60_000

/** Moves events that are due. A process of the earlier checkout may add more while it runs. */
export async function releaseDelayed(redis: RedisClient): Promise<void> {
  while ((await redis.run<number>(SCRIPTS.releaseDelayed, ['heddle:delayed'], [BATCH, POSTPONE_MS])) === BATCH) {
    // There may be more.
  }
}
