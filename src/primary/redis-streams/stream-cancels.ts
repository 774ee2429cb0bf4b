// Events of streams that were taken back.
import type { CancelTarget } from '../../contracts/events.ts'
import {
  CANCEL_KEPT_MS,
  Cancels,
  isMeant,
  isRevival,
  isTree,
  type Meant,
  type Revival,
  type Revived,
  revivalOf,
} from '../../runtime/events/cancelling.ts'
import { CANCELLED, CANCELLED_CHANNEL } from '../../runtime/redis-streams/keys.ts'
import { serverMs } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Hub } from '../events/hub.ts'
import { TakenEntry } from './settlements.ts'

/** Cancels that Redis keeps; with more, what the oldest ones meant and nobody has read is delivered after all. */
const NOTES_MAX = 10_000

export interface StreamCancelsOptions {
  hub: Hub
  redis: RedisClient
  listening: RedisClient
}

/**
 * What was taken back is a sorted set: a `CancelTarget` as JSON, and when, by the server's clock. Entries of that time or before are not delivered,
 * those that an event has caused for some time after it, too.
 * A replay of a dead letter is there, too: it and what it causes are not meant by what was there before.
 * Every process reads the set when it starts, when its connection is back, and when another one says that there is more.
 */
export class StreamCancels {
  readonly #options: StreamCancelsOptions
  readonly #cancels = new Cancels()
  #lastMs = 0

  constructor(options: StreamCancelsOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.#options.listening.subscribe(CANCELLED_CHANNEL, () => void this.look())
    await this.look()
  }

  /** @throws EVENT_BUS_UNAVAILABLE */
  async cancel(what: CancelTarget): Promise<void> {
    const { redis } = this.#options
    // An event with a key is never in a stream.
    if (typeof what !== 'string' && !isTree(what) && what.key !== undefined) return
    const nowMs = await serverMs(redis)
    await redis.command('zadd', [CANCELLED, nowMs, JSON.stringify(what)])
    await redis.command('zremrangebyrank', [CANCELLED, 0, -NOTES_MAX - 1])
    await redis.command('publish', [CANCELLED_CHANNEL, ''])
    this.#cancels.add(what, lastMsOf(what, nowMs))
  }

  /** A dead letter of the event is replayed: what was taken back before does not hold it up. @throws EVENT_BUS_UNAVAILABLE */
  async revive(event: Revived): Promise<void> {
    const { redis } = this.#options
    await this.look()
    if (!this.#cancels.hasTree(event)) return
    // After a cancel of the same millisecond.
    const atMs = (await serverMs(redis)) + 0.5
    await redis.command('zadd', [CANCELLED, atMs, JSON.stringify(revivalOf(event))])
    await redis.command('publish', [CANCELLED_CHANNEL, ''])
    await this.look()
  }

  /** Reads what is new. While Redis is away, the next look finds it. */
  async look(): Promise<void> {
    const { redis, hub } = this.#options
    try {
      const found = await redis.command<string[]>('zrangebyscore', [CANCELLED, this.#lastMs, '+inf', 'WITHSCORES'])
      for (let n = 0; n + 1 < found.length; n += 2) {
        const what = JSON.parse(found[n]!) as CancelTarget | Revival
        const atMs = Number(found[n + 1])
        if (isRevival(what)) {
          this.#lastMs = Math.max(this.#lastMs, atMs)
          this.#cancels.revive(what.revived)
          hub.revive(what.revived)
          continue
        }
        const untilMs = lastMsOf(what, atMs)
        this.#lastMs = Math.max(this.#lastMs, atMs)
        if (!this.#cancels.add(what, untilMs)) continue
        hub.cancel(
          ({ event }) =>
            !(isTree(what) && this.#cancels.isRevived(event, what.id)) &&
            event.source instanceof TakenEntry &&
            timeOf(event.source.id) <= untilMs &&
            isMeant(what, event),
        )
      }
    } catch {
      // The connection logs its loss.
    }
  }

  /** True for an entry that was taken back before it was read. */
  has(entryId: string, event: Meant): boolean {
    return this.#cancels.has(event, timeOf(entryId))
  }
}

/** Time of the last entry that is meant. */
const lastMsOf = (what: CancelTarget, atMs: number): number => (isTree(what) ? atMs + CANCEL_KEPT_MS : atMs)

const timeOf = (entryId: string): number => Number(entryId.slice(0, entryId.indexOf('-')))
