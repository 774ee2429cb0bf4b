import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { openRedis, type RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { DeliverySink } from '../events/event-server.ts'
import { PendingEntries, type PendingEntriesOptions } from './pending-entries.ts'
import { StreamPublisher } from './publisher.ts'
import { type ReaderOptions, StreamReader } from './reader.ts'
import { STREAM_SCRIPTS } from './scripts.ts'
import { StreamCommands } from './stream-commands.ts'
import { ThreadGroups } from './thread-groups.ts'

export interface ThreadStreamsOptions
  extends Pick<PendingEntriesOptions, 'serve' | 'received' | 'handOver' | 'tracing'>,
    Pick<ReaderOptions, 'idle' | 'more' | 'full'> {
  settings: Settings
  /** What the connection is called: `lane 0`. */
  role: string
  published: (frame: EventFrame) => void
  delayed: (delayMs: number) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The streams as one thread uses them, on a connection of its own: it publishes, and reads for its subscribers. */
export class ThreadStreams {
  readonly redis: RedisClient
  readonly #publisher: StreamPublisher
  readonly #groups = new ThreadGroups()
  readonly #pending: PendingEntries
  readonly #reader: StreamReader

  constructor(options: ThreadStreamsOptions) {
    const { settings, role, log, published, delayed } = options
    this.redis = openRedis(settings, {
      name: `heddle:${settings.replicaId}:${role}`,
      log,
      scripts: STREAM_SCRIPTS,
    })
    this.#publisher = new StreamPublisher({
      redis: this.redis,
      kv: settings,
      replica: settings.replicaId,
      maxOpen: Math.ceil(settings.eventBusMaxQueue / settings.lanes),
      published,
      delayed,
    })
    const commands = new StreamCommands(this.redis)
    const groups = this.#groups
    this.#pending = new PendingEntries({
      ...options,
      commands,
      groups,
      replica: settings.replicaId,
      settled: () => this.#reader.settled(),
    })
    this.#reader = new StreamReader({ ...options, commands, groups, pending: this.#pending })
  }

  /** Takes the answers to the deliveries that `serve` has begun. */
  get answers(): DeliverySink {
    return this.#pending
  }

  publish(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    return this.#publisher.publish(frame, replyTo)
  }

  add(local: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    this.#groups.add(local, plugin, event, identity, options)
  }
  remove(local: number): void {
    this.#groups.remove(local)
  }
  start(consumer: string): void {
    this.#groups.start(consumer)
  }
  open(event: string, group: string): void {
    this.#groups.open(event, group)
  }
  hold(event: string, group: string, isHeld: boolean): void {
    this.#groups.hold(event, group, isHeld)
  }
  wake(event: string): void {
    this.#reader.wake(event)
  }
  pause(plugin: string, isPaused: boolean): void {
    this.#groups.pause(plugin, isPaused)
  }
  /** Reads nothing more; resolves when all in hand is done. Publishing goes on. */
  stop(): Promise<void> {
    return this.#reader.stop()
  }

  async close(): Promise<void> {
    this.#pending.close()
    await this.redis.close()
  }
}
