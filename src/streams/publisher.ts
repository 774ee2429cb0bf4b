import { HeddleError } from '../errors/catalogue.ts'
import type { EventFrame } from '../frames/event-frame.ts'
import type { RedisClient } from '../redis/client.ts'
import { delayEvent } from './delayed.ts'
import { encodeEntry } from './entry.ts'
import { streamOf } from './keys.ts'
import { publishKeyed } from './publishing.ts'

export interface PublisherOptions {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  /** Entries that a stream keeps, about; undefined: what its groups need. */
  maxLength: number | undefined
  /** Publications of this thread that are on their way at most. */
  maxOpen: number
  /** Told of each event that the store has taken. */
  published: (frame: EventFrame) => void
  /** Told of each delay: somebody has to look when it is over. */
  delayed: (delayMs: number) => void
}

/** Publishes to the streams. Resolves when the store has taken the event. */
export class StreamPublisher {
  readonly #options: PublisherOptions
  #open = 0

  constructor(options: PublisherOptions) {
    this.#options = options
  }

  /** @throws EVENT_BUS_FULL, EVENT_BUS_UNAVAILABLE; with `details.outcome` `unknown` the event may have been taken all the same */
  async publish(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    const { maxOpen, published } = this.#options
    if (this.#open >= maxOpen) {
      throw new HeddleError('EVENT_BUS_FULL', `${this.#open} events are on their way to the store already`)
    }
    this.#open++
    try {
      await this.#send(frame, replyTo)
    } catch (fault) {
      throw unpublished(frame.event, fault)
    } finally {
      this.#open--
    }
    published(frame)
    return frame.id
  }

  async #send(frame: EventFrame, replyTo: string | null): Promise<void> {
    const { redis, replica, maxLength, delayed } = this.#options
    const { event, key, delayMs } = frame
    const fields = encodeEntry(frame, replica, replyTo)
    const stream = streamOf(event)
    if (delayMs > 0) {
      await delayEvent(redis, { event, eventId: frame.id, key, fields }, delayMs)
      delayed(delayMs)
    } else if (key !== null) await publishKeyed(redis, event, key, fields, maxLength)
    else {
      const cap = maxLength === undefined ? [] : ['MAXLEN', '~', maxLength]
      await redis.command('xadd', [stream, ...cap, '*', ...fields])
    }
  }
}

function unpublished(event: string, fault: unknown): HeddleError {
  if (!(fault instanceof HeddleError)) throw fault
  const isUnknown = (fault.details as { outcome?: string } | undefined)?.outcome === 'unknown'
  const doubt = isUnknown ? '; it may have been taken all the same' : ''
  return new HeddleError('EVENT_BUS_UNAVAILABLE', `${event} was not published${doubt}: ${fault.message}`, {
    cause: fault,
    details: fault.details,
  })
}
