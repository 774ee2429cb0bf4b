import type { RedisClient } from '../../stores/redis/client.ts'
import { ensureGroup } from './consumers.ts'
import { isAcknowledged } from './publisher.ts'
import { SCRIPTS } from './scripts.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** An entry as XREADGROUP gives it: names and values of its fields alternating, null when it has been cut from the stream. */
export type Entry = [id: string, fields: string[] | null]
type Streams = [stream: string, entries: Entry[]][] | null

/** How a request has ended at one subscriber. */
export type ReplyOutcome = 'reply' | 'failed'

/** The commands of a thread that reads and publishes, on its connection. */
export class StreamCommands {
  readonly #redis: RedisClient

  constructor(redis: RedisClient) {
    this.#redis = redis
  }

  /** Entries that no consumer of the group has had. */
  async read(stream: string, group: string, consumer: string, count: number): Promise<Entry[]> {
    const args = ['GROUP', group, consumer, 'COUNT', count, 'STREAMS', stream, '>']
    const streams = await this.#redis.command<Streams>('xreadgroup', args)
    return streams?.[0]?.[1] ?? []
  }

  /** Pending entries of this consumer that come after the entry `after`. */
  async readOwn(stream: string, group: string, consumer: string, after: string, count: number): Promise<Entry[]> {
    const args = ['GROUP', group, consumer, 'COUNT', count, 'STREAMS', stream, after]
    const streams = await this.#redis.command<Streams>('xreadgroup', args)
    return streams?.[0]?.[1] ?? []
  }

  async acknowledge(stream: string, group: string, entryIds: readonly string[]): Promise<void> {
    await this.#redis.command('xack', [stream, group, ...entryIds])
  }

  lastEntryId(stream: string): Promise<string> {
    return this.#redis.run<string>(SCRIPTS.lastId, [stream], [])
  }

  finished(stream: string, group: string, entryIds: readonly string[]): Promise<boolean[]> {
    return isAcknowledged(this.#redis, stream, group, entryIds)
  }

  /** Creates a group when there is none. It begins at `$` (entries that come from now on) or `0` (the beginning of the stream). */
  async ensureGroup(stream: string, group: string, from: '$' | '0'): Promise<void> {
    await ensureGroup(this.#redis, stream, group, from)
  }

  async reply(replyTo: string, outcome: ReplyOutcome, text: string): Promise<void> {
    const [channel, number] = splitAddress(replyTo)
    await this.#redis.command('publish', [channel, toJson([Number(number), outcome, text])])
  }
}

/** `<channel> <number>`. */
function splitAddress(replyTo: string): [channel: string, number: string] {
  const at = replyTo.lastIndexOf(' ')
  return [replyTo.slice(0, at), replyTo.slice(at + 1)]
}
