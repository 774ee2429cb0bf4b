import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { EventNames, type Publisher } from '../events/publication.ts'
import { StreamPublisher } from './publisher.ts'
import { STREAM_SCRIPTS } from './scripts.ts'

interface ThreadPublisherOptions {
  settings: Settings
  /** What the connection is called: `lane 0`. */
  role: string
  /** Told of each event that the store has taken. */
  published: (frame: EventFrame) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** Publishes to the streams for one thread, on a connection of its own. */
export class ThreadPublisher implements Publisher {
  readonly redis: RedisClient
  readonly #publisher: StreamPublisher
  readonly #names: EventNames

  constructor({ settings, role, published, log }: ThreadPublisherOptions) {
    this.redis = new RedisClient(settings, {
      name: `heddle:${settings.replicaId}:${role}`,
      log,
      scripts: STREAM_SCRIPTS,
    })
    this.#names = new EventNames(settings.eventBusMaxNames)
    this.#publisher = new StreamPublisher({
      redis: this.redis,
      kv: settings,
      replica: settings.replicaId,
      maxOpen: Math.ceil(settings.eventBusMaxQueue / settings.lanes),
      published,
    })
  }

  /** @throws EVENT_NAMES_LIMIT at once */
  publish(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    this.#names.check(frame.emitter, frame.event)
    return this.#publisher.publish(frame, replyTo)
  }

  async close(): Promise<void> {
    await this.redis.close()
  }
}
