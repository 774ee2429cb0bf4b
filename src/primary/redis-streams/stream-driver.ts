// Publishes, requests and lists dead letters for the primary, over the streams.
import { randomBytes } from 'node:crypto'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { SYSTEM_CLOCK, type Timer } from '../../core/schedule/clock.ts'
import { staysInStore } from '../../runtime/event-store/event-columns.ts'
import { replyChannelOf, streamOf } from '../../runtime/redis-streams/keys.ts'
import type { ThreadPublisher } from '../../runtime/redis-streams/publisher.ts'
import { listGroups, type ReplyOutcome } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Requester, SubscriberThread } from '../events/consumer.ts'
import type { DeadLetters } from '../events/dead-letters.ts'
import type { EventDriver } from '../events/event-driver.ts'
import type { Hub } from '../events/hub.ts'
import { awaitReply, replySettled } from '../events/queues.ts'
import { CombinedDeadLetters } from './combined-dead-letters.ts'
import { StreamDeadLetters } from './dead-letters.ts'

/** Open requests of this replica, answered by a subscriber on any replica. A reply sent while the connection is lost is lost as well. */
class Replies {
  readonly #channel: string
  readonly #listening: RedisClient
  readonly #open = new Map<number, Requester>()
  readonly #timers = new Set<Timer>()
  #lastNumber = 0
  #subscribed: Promise<unknown> | null = null

  constructor(listening: RedisClient, replica: string) {
    this.#listening = listening
    // Channels ignore the database number: another deployment on the same server may have a replica of this name.
    this.#channel = `${replyChannelOf(replica)}:${randomBytes(8).toString('hex')}`
  }

  /**
   * Publishes an event and waits for a reply.
   * @param groups number of subscribers
   * @param publish receives the address for the reply
   * @returns the first object a subscriber returns, as JSON
   */
  async request(
    event: string,
    groups: number,
    timeoutMs: number,
    publish: (replyTo: string) => Promise<unknown>,
  ): Promise<string> {
    this.#subscribed ??= this.#listening.subscribe(this.#channel, (message) => this.#onMessage(message))
    try {
      await this.#subscribed
    } catch (error) {
      this.#subscribed = null
      throw error
    }
    this.#lastNumber = (this.#lastNumber + 1) & 0x7fffffff
    const number = this.#lastNumber
    const reply = awaitReply(SYSTEM_CLOCK, event, timeoutMs, this.#timers, (requester) => {
      requester.open = groups
      this.#open.set(number, requester)
    })
    const published = publish(`${this.#channel} ${number}`).then(() => reply)
    return Promise.race([reply, published]).finally(() => this.#open.delete(number))
  }

  #onMessage(message: string): void {
    let answer: [number: number, outcome: ReplyOutcome, text: string]
    try {
      answer = JSON.parse(message)
    } catch {
      return
    }
    if (!Array.isArray(answer)) return
    const [number, outcome, text] = answer
    const requester = this.#open.get(number)
    if (requester === undefined) return
    if (outcome === 'reply') requester.reply(text)
    else replySettled(requester, text)
  }

  close(): void {
    for (const timer of this.#timers) SYSTEM_CLOCK.cancel(timer)
    this.#open.clear()
  }
}

export interface StreamDriverOptions {
  settings: Settings
  own: ThreadPublisher
  /** A connection of its own, for listening only. */
  listening: RedisClient
  hub: Hub
  /** Stores an event in the database. */
  store: (event: EventFrame, origin: SubscriberThread | null) => Promise<string>
  /** The dead letters in the database. */
  stored: DeadLetters
  /** Called before the replay of an event. */
  onReplay: (event: EventFrame) => Promise<void>
}

/** Publishes, requests and lists dead letters for the primary, over the streams. */
export class StreamDriver implements EventDriver {
  readonly #options: StreamDriverOptions
  readonly inRedis: StreamDeadLetters
  readonly deadLetters: CombinedDeadLetters
  readonly #replies: Replies

  constructor(options: StreamDriverOptions) {
    this.#options = options
    const { settings, hub, own, listening, stored, onReplay } = options
    this.inRedis = new StreamDeadLetters(own.redis, {
      maxBytes: settings.eventBusMaxDeadBytes,
      onReplay,
      onCut: (deadLetters) => hub.deadLetters.dropped.add(deadLetters),
    })
    this.deadLetters = new CombinedDeadLetters(this.inRedis, stored)
    this.#replies = new Replies(listening, settings.replicaId)
  }

  async publish(event: EventFrame, origin: SubscriberThread | null): Promise<string> {
    const { hub, own, store } = this.#options
    if (staysInStore(event)) return store(event, origin)
    await own.publish(event)
    hub.record(event, origin)
    return event.id
  }

  /** Sends an event that a transaction has committed. */
  async relay(event: EventFrame): Promise<void> {
    const { hub, own } = this.#options
    await own.send(event)
    hub.record(event, null)
  }

  /** Publishes and resolves with the first object a subscriber on any replica returns, as JSON. */
  async request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    const { hub, own } = this.#options
    const groups = await listGroups(own.redis, streamOf(event.event))
    if (groups.length === 0) throw new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`)
    return this.#replies.request(event.event, groups.length, timeoutMs, async (replyTo) => {
      await own.publish(event, replyTo)
      hub.record(event, origin)
    })
  }

  /** Ends open requests without a reply. */
  close(): void {
    this.#replies.close()
  }
}
