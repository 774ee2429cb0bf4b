import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { listGroups } from '../../runtime/streams/consumers.ts'
import { streamOf } from '../../runtime/streams/keys.ts'
import type { ThreadPublisher } from '../../runtime/streams/thread-publisher.ts'
import { openRedis, type RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { DroppedLetters } from '../events/dead-letters.ts'
import type { EventDriver } from '../events/event-driver.ts'
import { StreamDeadLetters } from './dead-letters.ts'
import { Replies } from './replies.ts'

export interface StreamDriverOptions {
  settings: Settings
  own: ThreadPublisher
  /** Told of each event that the store has taken. */
  published: (event: EventFrame, origin: SubscriberThread | null) => void
  /** Counts the letters that were dropped for new ones. */
  dropped: DroppedLetters
}

/** Publishes, requests and keeps dead letters for the primary, by the streams. */
export class StreamDriver implements EventDriver {
  readonly #options: StreamDriverOptions
  readonly deadLetters: StreamDeadLetters
  readonly #listening: RedisClient
  readonly #replies: Replies

  constructor(options: StreamDriverOptions) {
    this.#options = options
    const { settings, own, dropped } = options
    this.deadLetters = new StreamDeadLetters(own.redis, {
      maxBytes: settings.eventBusMaxDeadBytes,
      onCut: (letters) => dropped.add(letters),
    })
    // The primary's own connection logs the state of the store: this one would log the same.
    this.#listening = openRedis(settings, { name: `heddle:${settings.replicaId}:replies`, log: () => {} })
    this.#replies = new Replies(this.#listening, settings.replicaId)
  }

  async publish(event: EventFrame, origin: SubscriberThread | null): Promise<void> {
    const { own, published } = this.#options
    await own.publish(event)
    published(event, origin)
  }

  /** Publishes and resolves with the first object that a subscriber on any replica returns, as JSON. */
  async request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    const { own, published } = this.#options
    const groups = await listGroups(own.redis, streamOf(event.event))
    if (groups.length === 0) throw new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`)
    return this.#replies.request(event.event, groups.length, timeoutMs, async (replyTo) => {
      await own.publish(event, replyTo)
      published(event, origin)
    })
  }

  /** Open requests get no reply any more. */
  async close(): Promise<void> {
    this.#replies.close()
    await this.#listening.close()
  }
}
