/** What streams of events in a Redis are not done with. */
import type { Redis } from 'ioredis'

/**
 * Counts entries that a group has not had, or has not acknowledged.
 * @param event a name, or a pattern
 * @param isMeant the groups that count
 */
export async function unfinishedEntries(redis: Redis, event = '*', isMeant = (_group: string) => true) {
  let count = 0
  for (const stream of await redis.keys(`heddle:event:${event}`)) {
    if ((await redis.type(stream)) !== 'stream') continue
    for (const group of (await redis.xinfo('GROUPS', stream)) as unknown[][]) {
      const field = (name: string): unknown => group[group.indexOf(name) + 1]
      if (!isMeant(String(field('name')))) continue
      const fresh = await redis.xrange(stream, `(${field('last-delivered-id')}`, '+')
      count += Number(field('pending')) + fresh.length
    }
  }
  return count
}
