import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { openRedis, type RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { StreamCommand, StreamReport } from '../../transport/stream-messages.ts'
import type { DeliverySink } from '../events/event-server.ts'
import { EventNames } from '../events/publication.ts'
import { PendingEntries, type PendingEntriesOptions } from './pending-entries.ts'
import { StreamPublisher } from './publisher.ts'
import { StreamReader } from './reader.ts'
import { STREAM_SCRIPTS } from './scripts.ts'
import { StreamCommands } from './stream-commands.ts'
import { ThreadGroups } from './thread-groups.ts'

export interface ThreadStreamsOptions extends Pick<PendingEntriesOptions, 'serve' | 'received' | 'tracing'> {
  settings: Settings
  /** What the connection is called: `lane 0`. */
  role: string
  published: (frame: EventFrame) => void
  /** Takes what the coordinator of the streams is to know. */
  report: (report: StreamReport) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The streams as one thread uses them, on a connection of its own: it publishes, and reads for its subscribers. */
export class ThreadStreams {
  readonly redis: RedisClient
  readonly #publisher: StreamPublisher
  readonly #names: EventNames
  readonly #groups = new ThreadGroups()
  readonly #pending: PendingEntries
  readonly #reader: StreamReader
  readonly #report: (report: StreamReport) => void

  constructor(options: ThreadStreamsOptions) {
    const { settings, role, log, published, report } = options
    this.#report = report
    this.redis = openRedis(settings, {
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
      delayed: (delayMs) => report({ kind: 'delayed', delayMs }),
    })
    const commands = new StreamCommands(this.redis)
    const groups = this.#groups
    this.#pending = new PendingEntries({
      ...options,
      handOver: (handOver) => report({ kind: 'hand-over', handOver }),
      commands,
      groups,
      replica: settings.replicaId,
      settled: () => this.#reader.settled(),
    })
    this.#reader = new StreamReader({
      commands,
      groups,
      pending: this.#pending,
      idle: (event, upTo) => report({ kind: 'idle', event, upTo }),
      more: (event) => report({ kind: 'more', event }),
      full: (event, isFull) => report({ kind: 'full', event, isFull }),
      log,
    })
  }

  /** Takes the answers to the deliveries that `serve` has begun. */
  get sink(): DeliverySink {
    return this.#pending
  }

  /** @throws EVENT_NAMES_LIMIT at once */
  publish(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    this.#names.check(frame.emitter, frame.event)
    return this.#publisher.publish(frame, replyTo)
  }

  add(subscriberIndex: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    this.#groups.add(subscriberIndex, plugin, event, identity, options)
  }
  remove(subscriberIndex: number): void {
    this.#groups.remove(subscriberIndex)
  }

  /** Does what the coordinator says. */
  obey(command: StreamCommand): void {
    switch (command.kind) {
      case 'start':
        return this.#groups.start(command.consumer)
      case 'open':
        return this.#groups.open(command.event, command.group)
      case 'wake':
        return this.#reader.wake(command.event)
      case 'hold':
        return this.#groups.hold(command.event, command.group, command.isHeld)
      case 'pause':
        return this.#groups.pause(command.plugin, command.isPaused)
      case 'stop':
        // Publishing goes on.
        void this.#reader.stop().then(() => this.#report({ kind: 'stopped' }))
    }
  }

  async close(): Promise<void> {
    this.#pending.close()
    await this.redis.close()
  }
}
