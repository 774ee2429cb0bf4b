import type { DeadLetter } from '../contracts/event-bus.ts'
import { HeddleError } from '../errors/catalogue.ts'
import type { EventHost } from '../events/consumer.ts'
import type { EventFrame } from '../frames/event-frame.ts'
import type { RedisClient } from '../redis/client.ts'
import type { StreamDeadLetters } from './dead-letters.ts'
import { streamOf } from './keys.ts'
import type { Replies } from './replies.ts'
import type { ThreadStreams } from './thread-streams.ts'

export interface StreamDriverOptions {
  redis: RedisClient
  own: ThreadStreams
  replies: Replies
  letters: StreamDeadLetters
  /** Told of each event that the store has taken. */
  published: (event: EventFrame, origin: EventHost | null) => void
}

/** What the primary publishes, asks for and buries, by the streams. Payloads are JSON text. */
export class StreamDriver {
  readonly #options: StreamDriverOptions

  constructor(options: StreamDriverOptions) {
    this.#options = options
  }

  async publish(event: EventFrame, origin: EventHost | null): Promise<void> {
    const { own, published } = this.#options
    await own.publish(event)
    published(event, origin)
  }

  /** Publishes and resolves with the first object that a subscriber returns, on whatever replica, as JSON. */
  async request(event: EventFrame, origin: EventHost | null, timeoutMs: number): Promise<string> {
    const { own, replies, published } = this.#options
    const groups = await this.#groupsOf(event.event)
    if (groups === 0) throw new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`)
    return replies.ask(event.event, groups, timeoutMs, async (replyTo) => {
      await own.publish(event, replyTo)
      published(event, origin)
    })
  }

  /** How many groups get an event, on all replicas. */
  async #groupsOf(event: string): Promise<number> {
    try {
      return (await this.#options.redis.command<unknown[]>('xinfo', ['GROUPS', streamOf(event)])).length
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined
      if (cause instanceof Error && /no such key/i.test(cause.message)) return 0
      throw error
    }
  }

  deadLetters(): Promise<DeadLetter[]> {
    return this.#options.letters.list()
  }
  /** False when there is no such letter, or no such group any more. */
  replayDeadLetter(id: string): Promise<boolean> {
    return this.#options.letters.replay(id)
  }
  deleteDeadLetter(id: string): Promise<boolean> {
    return this.#options.letters.delete(id)
  }
}
