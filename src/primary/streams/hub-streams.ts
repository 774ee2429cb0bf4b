import type { LogLevel } from '../../contracts/logger.ts'
import { KeyGate } from '../../runtime/streams/key-gate.ts'
import { consumerOf } from '../../runtime/streams/keys.ts'
import { StreamCommands } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Hub } from '../events/hub.ts'
import { ClaimedEntries } from './claimed-entries.ts'
import { Claimer } from './claimer.ts'
import type { StreamDeadLetters } from './dead-letters.ts'
import { FailedDeliveries } from './failed-deliveries.ts'

export interface HubStreamsOptions {
  redis: RedisClient
  hub: Hub
  letters: StreamDeadLetters
  /** REPLICA_ID. */
  replica: string
  /** A thread of this process that lives: what it has in hand is being worked at. */
  isAlive: (consumer: string) => boolean
  /** Told of each event that another replica has published. */
  received: (frame: EventFrame) => void
  /** The hub has as much of a group as it takes, or has room for it again. */
  full: (stream: string, group: string, isFull: boolean) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The streams as the hub of a process uses them: it reads nothing, it takes over what others have read and do not bring to its end. */
export class HubStreams {
  readonly consumer: string
  readonly claimed: ClaimedEntries
  readonly failedDeliveries: FailedDeliveries
  readonly claimer: Claimer
  readonly #gate: KeyGate

  constructor({ redis, hub, letters, replica, isAlive, received, full, log }: HubStreamsOptions) {
    const commands = new StreamCommands(redis)
    this.consumer = consumerOf(replica, 'hub')
    this.claimed = new ClaimedEntries(full)
    this.#gate = new KeyGate((stream, group, ids) => commands.finished(stream, group, ids))
    this.failedDeliveries = new FailedDeliveries({
      redis,
      commands,
      hub,
      letters,
      claimed: this.claimed,
      replica,
      consumer: this.consumer,
      onConfirmed: (stream, group, ids) => this.#gate.acknowledged(stream, group, ids),
      log,
    })
    this.claimer = new Claimer({
      redis,
      hubConsumer: this.consumer,
      claimed: this.claimed,
      gate: this.#gate,
      isAlive,
      deliver: (stream, entry, ...brokerDelivery) => {
        if (entry.replica !== replica) received(entry.frame)
        return this.failedDeliveries.deliverClaimed(stream, entry, ...brokerDelivery)
      },
      onMalformed: (stream, group, id, why) => void this.failedDeliveries.storeMalformed(stream, group, id, why),
      release: (stream, group, id) => this.failedDeliveries.release(stream, group, id),
    })
  }

  /** What waits for its turn is begun no more. */
  stop(): void {
    this.claimer.close()
    this.#gate.close()
  }

  /** What the store has not taken by now it is not told again. */
  close(): void {
    this.failedDeliveries.close()
  }
}
