// What is asked of a stream.
import type { RedisClient } from '../../stores/redis/client.ts'
import { SCRIPTS } from './scripts.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** An entry as XREADGROUP gives it: names and values of its fields alternating, null when it has been cut from the stream. */
export type Entry = [id: string, fields: string[] | null]
type Streams = [stream: string, entries: Entry[]][] | null

/** How a request has ended at one subscriber. */
export type ReplyOutcome = 'reply' | 'failed'

/** Entries that no consumer of the group has had. */
export async function readGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  consumer: string,
  count: number,
): Promise<Entry[]> {
  const args = ['GROUP', group, consumer, 'COUNT', count, 'STREAMS', stream, '>']
  const streams = await redis.command<Streams>('xreadgroup', args)
  return streams?.[0]?.[1] ?? []
}

/** The id of the newest entry that the stream has ever had; 0-0 when there is none. */
export const lastEntryId = (redis: RedisClient, stream: string): Promise<string> =>
  redis.run<string>(SCRIPTS.lastId, [stream], [])

/** @param replyTo `<channel> <number>` */
export async function reply(redis: RedisClient, replyTo: string, outcome: ReplyOutcome, text: string): Promise<void> {
  const at = replyTo.lastIndexOf(' ')
  const number = Number(replyTo.slice(at + 1))
  await redis.command('publish', [replyTo.slice(0, at), toJson([number, outcome, text])])
}
