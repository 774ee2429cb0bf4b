import type { LogLevel } from '../../contracts/logger.ts'
import { KeyGate } from '../../runtime/streams/key-gate.ts'
import { consumerOf } from '../../runtime/streams/keys.ts'
import { StreamCommands } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Hub } from '../events/hub.ts'
import { Custody } from './claimed-entries.ts'
import { Takeover } from './claimer.ts'
import type { StreamDeadLetters } from './dead-letters.ts'
import { Adoptions } from './failed-deliveries.ts'

export interface HubStreamsOptions {
  redis: RedisClient
  hub: Hub
  letters: StreamDeadLetters
  /** REPLICA_ID. */
  replica: string
  /** A thread of this process that lives: what it has in hand is being worked at. */
  isAtWork: (consumer: string) => boolean
  /** Told of each event that another replica has published. */
  received: (frame: EventFrame) => void
  /** The hub has as much of a group as it takes, or has room for it again. */
  full: (stream: string, group: string, isFull: boolean) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The streams as the hub of a process uses them: it reads nothing, it takes over what others have read and do not bring to its end. */
export class HubStreams {
  readonly consumer: string
  readonly custody: Custody
  readonly adoptions: Adoptions
  readonly takeover: Takeover
  readonly #gate: KeyGate

  constructor({ redis, hub, letters, replica, isAtWork, received, full, log }: HubStreamsOptions) {
    const commands = new StreamCommands(redis)
    this.consumer = consumerOf(replica, 'hub')
    this.custody = new Custody(full)
    this.#gate = new KeyGate((stream, group, ids) => commands.finished(stream, group, ids))
    this.adoptions = new Adoptions({
      redis,
      commands,
      hub,
      letters,
      custody: this.custody,
      replica,
      consumer: this.consumer,
      onConfirmed: (stream, group, ids) => this.#gate.acknowledged(stream, group, ids),
      log,
    })
    this.takeover = new Takeover({
      redis,
      hubConsumer: this.consumer,
      custody: this.custody,
      gate: this.#gate,
      isAtWork,
      adopt: (stream, entry, ...adoption) => {
        if (entry.replica !== replica) received(entry.frame)
        return this.adoptions.adopt(stream, entry, ...adoption)
      },
      onForeign: (stream, group, id, why) => void this.adoptions.keepForeign(stream, group, id, why),
      giveBack: (stream, group, id) => this.adoptions.giveBack(stream, group, id),
    })
  }

  /** What waits for its turn is begun no more. */
  stop(): void {
    this.takeover.close()
    this.#gate.close()
  }

  /** What the store has not taken by now it is not told again. */
  close(): void {
    this.adoptions.close()
  }
}
