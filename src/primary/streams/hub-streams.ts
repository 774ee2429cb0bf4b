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
  /** True for a thread of this process that lives: it handles its pending entries. */
  isAlive: (consumer: string) => boolean
  /** Told of each event that another replica has published. */
  received: (frame: EventFrame) => void
  /** Told when the hub has as many entries of a group as it takes, and when it has room again. */
  full: (stream: string, group: string, isFull: boolean) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The streams as the hub of a process uses them: it reads nothing itself, it takes over entries that others have read and not finished. */
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

  /** Entries that wait for their turn are not begun any more. */
  stop(): void {
    this.claimer.close()
    this.#gate.close()
  }

  /** Commands that the store has not taken by now are not repeated. */
  close(): void {
    this.failedDeliveries.close()
  }
}
