// What the hub does for streams: deliveries that failed, those that are claimed.

import type { LogLevel } from '../../contracts/logger.ts'
import { isNoGroup } from '../../runtime/streams/consumers.ts'
import { encodeEntry, type StreamEvent } from '../../runtime/streams/entry.ts'
import { consumerOf, streamOf, subscriberOf } from '../../runtime/streams/keys.ts'
import { Acknowledger, KeyGate } from '../../runtime/streams/pending-entries.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import { StreamCommands } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { asBytes, type EventFrame, textOf } from '../../transport/frames/event-frame.ts'
import type { StreamHandOver } from '../../transport/stream-messages.ts'
import {
  type EventSource,
  type FailedDelivery,
  hubEventOf,
  type Requester,
  type Share,
  type SubscriberInstance,
} from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { ClaimedEntries, type ClaimedShare, Claimer } from './claimer.ts'
import type { StreamDeadLetters } from './dead-letters.ts'

/** The idle time that released entries get: longer than any replica waits before it claims. */
const RELEASED_IDLE_MS = 86_400_000

interface LeaseRenewal {
  renewed: number
  /** Pending entries that were cut from the stream meanwhile: nobody can get them again. */
  cut: number
}

/**
 * Renews the lease of these consumers on their pending entries: they are not idle, so no replica claims them.
 * Call it from a thread that no handler can block, more often than others claim.
 * @param minIdleMs entries that have been idle for less are left as they are; at least 1
 */
export async function renewLeases(
  redis: RedisClient,
  stream: string,
  group: string,
  consumers: readonly string[],
  minIdleMs: number,
): Promise<LeaseRenewal> {
  if (consumers.length === 0) return { renewed: 0, cut: 0 }
  try {
    const args = [group, Math.max(1, minIdleMs), ...consumers]
    const [renewed, cut] = await redis.run<[number, number]>(SCRIPTS.renewLeases, [stream], args)
    return { renewed, cut }
  } catch (fault) {
    if (isNoGroup(fault)) return { renewed: 0, cut: 0 }
    throw fault
  }
}

/** Pending entries of one consumer group. */
interface PendingEntries {
  stream: string
  group: string
  ids: readonly string[] | 'all'
}

/**
 * Releases pending entries of a consumer, so that the next replica that claims gets them at once, whatever idle time it waits for.
 * For a graceful stop; end the renewal of this consumer's lease first. Entries that are no longer this consumer's are left alone.
 * @returns the ids that were released
 */
export function releaseEntries(redis: RedisClient, entries: PendingEntries, consumer: string): Promise<string[]> {
  return moveEntries(redis, entries, { from: consumer, to: consumer, idleMs: RELEASED_IDLE_MS })
}

/**
 * Moves pending entries from one consumer to another. Their idle time starts again, their delivery count stays.
 * @returns the ids that were moved, without those that `from` no longer had
 */
export function handOver(
  redis: RedisClient,
  entries: PendingEntries,
  { from, to }: { from: string; to: string },
): Promise<string[]> {
  return moveEntries(redis, entries, { from, to, idleMs: 0 })
}

async function moveEntries(
  redis: RedisClient,
  { stream, group, ids }: PendingEntries,
  { from, to, idleMs }: { from: string; to: string; idleMs: number },
): Promise<string[]> {
  if (ids.length === 0) return []
  try {
    return await redis.run(SCRIPTS.moveEntries, [stream], [group, from, to, idleMs, ...(ids === 'all' ? [] : ids)])
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}

/** Before a dead letter that the store did not take is sent again, milliseconds. */
const RETRY_MS = 500

interface FailedDeliveriesOptions {
  redis: RedisClient
  commands: StreamCommands
  hub: Hub
  letters: StreamDeadLetters
  claimed: ClaimedEntries
  /** REPLICA_ID. */
  replica: string
  /** The hub's consumer. */
  consumer: string
  /** Told of entries that are done. */
  onConfirmed: (stream: string, group: string, entryIds: readonly string[]) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** What is known of an entry that is not in the hub. */
const FIRST_ATTEMPT = { attempt: 1, deaths: 0, dueMs: 0, error: '' } as const

/**
 * The events of the streams that the hub finishes: those of groups that handle few at a time, those whose first attempt failed, those that
 * a thread died with, those of replicas that do not answer. The hub retries, quarantines and gives up as it does with its own events; the dead letters go to the store.
 */
class FailedDeliveries {
  readonly #options: FailedDeliveriesOptions
  readonly #acks: Acknowledger
  #isClosed = false

  constructor(options: FailedDeliveriesOptions) {
    this.#options = options
    this.#acks = new Acknowledger(options.commands, (stream, group, ids) => this.#confirmed(stream, group, ids))
  }

  #confirmed(stream: string, group: string, ids: readonly string[]): void {
    for (const id of ids) this.#options.claimed.delete(stream, group, id)
    this.#options.onConfirmed(stream, group, ids)
  }

  /** Acknowledgements and letters that are not confirmed. */
  get open(): number {
    return this.#acks.open + this.#storing
  }

  /** Takes an event that a thread does not finish. @param from the consumer of that thread; @param instance its subscriber */
  takeHandOver(taken: StreamHandOver, from: string, instance: SubscriberInstance | null): void {
    const { redis, consumer } = this.#options
    const { event, group, entryId, frame, replyTo, fault, isUnrecoverable, expiresMs, span } = taken
    const stream = streamOf(event)
    // Its thread has read it again, since it did not know what became of it.
    if (this.#options.claimed.has(stream, group, entryId)) return
    const isBegun = fault !== null
    this.#options.claimed.add(stream, group, entryId, frame?.payload.length ?? 0, !isBegun)
    if (frame === null) return void this.storeMalformed(stream, group, entryId, fault ?? '')
    // Should this fail, the entry stays pending at that thread's consumer, and is handled here all the same.
    handOver(redis, { stream, group, ids: [entryId] }, { from, to: consumer }).catch(() => {})
    const failure = fault === null ? null : isUnrecoverable ? 'unrecoverable' : 'once'
    const share = { ...FIRST_ATTEMPT, instance, error: fault ?? '', failure, isBegun, span } as const
    if (!this.#deliver(stream, group, { entryId, frame, replyTo }, share, expiresMs))
      this.release(stream, group, entryId)
  }

  /** Takes a claimed entry. @param onEnded told when it is done, or given back. @returns false when nobody here subscribes as that group */
  deliverClaimed(
    stream: string,
    entry: StreamEvent,
    { group, deaths, blackBox }: ClaimedShare,
    onEnded: () => void,
  ): boolean {
    if (entry.onlyGroup !== null && entry.onlyGroup !== group) {
      this.#acks.add(stream, group, entry.entryId)
      onEnded()
      return true
    }
    // A thread or a replica has had it, and said nothing of it.
    const share = { ...FIRST_ATTEMPT, instance: null, deaths, blackBox, isBegun: true }
    return this.#deliver(stream, group, entry, share, 0, onEnded)
  }

  #deliver(
    stream: string,
    group: string,
    { entryId, frame, replyTo }: Pick<StreamEvent, 'entryId' | 'frame' | 'replyTo'>,
    share: Omit<Share, 'group'>,
    expiresMs: number,
    onEnded: () => void = () => {},
  ): boolean {
    const source = this.#source(stream, group, entryId, onEnded)
    const requester = replyTo === null ? null : this.#requester(replyTo)
    // Its order is the server's affair.
    const event = hubEventOf({ ...asBytes(frame), key: null }, expiresMs, source, requester)
    return this.#options.hub.take(event, [{ ...share, group: subscriberOf(group) }]) > 0
  }

  #source(stream: string, group: string, entryId: string, onEnded: () => void): EventSource {
    let isKept = false
    return {
      isBroker: true,
      begun: () => this.#options.claimed.begun(stream, group, entryId),
      storeDeadLetter: async (_, letter) => {
        isKept = true
        await this.#storeLetter(stream, group, entryId, letter)
      },
      ended: (_, isDone) => {
        if (!isDone) this.release(stream, group, entryId)
        // Storing a letter acknowledges its entry in the same step.
        else if (!isKept) this.#acks.add(stream, group, entryId)
        onEnded()
      },
    }
  }

  #requester(replyTo: string): Requester {
    const { commands } = this.#options
    // The request has a time limit of its own.
    return {
      open: 0,
      onlyFailures: true,
      reply: (json) => void commands.reply(replyTo, 'reply', json).catch(() => {}),
      failed: (error) => void commands.reply(replyTo, 'failed', error).catch(() => {}),
    }
  }

  /** Gives an entry back, since nobody here takes it: the next replica that claims gets it. */
  release(stream: string, group: string, entryId: string): void {
    const { redis, consumer, claimed } = this.#options
    claimed.delete(stream, group, entryId)
    releaseEntries(redis, { stream, group, ids: [entryId] }, consumer).catch(() => {
      // Then it is claimed when its idle time is over.
    })
  }

  // ── dead letters ──────────────────────────────────────────────────────────

  #storing = 0

  async #storeLetter(stream: string, group: string, entryId: string, letter: FailedDelivery): Promise<void> {
    const { event, subscriber, error, attempts, blackBox } = letter
    const [, envelope] = encodeEntry({ ...event, trace: event.producer }, this.#options.replica, null)
    await this.#store(stream, group, entryId, {
      envelope: envelope!,
      payload: textOf(event),
      event: event.event,
      group,
      subscriber,
      error,
      attempts,
      blackBox,
    })
  }

  /** Stores an entry that is no event as a dead letter, with its fields as they are. */
  async storeMalformed(stream: string, group: string, entryId: string, why: string): Promise<void> {
    const { redis, log } = this.#options
    log('WARNING', `An entry of ${stream} is no event and goes to the dead letters: ${why}`, { entry: entryId, group })
    let fields: string[] = []
    try {
      const rows = await redis.command<[string, string[]][]>('xrange', [stream, entryId, entryId])
      fields = rows[0]?.[1] ?? []
    } catch {
      // Then the letter holds the entry's id alone.
    }
    const payload: Record<string, string> = {}
    for (let n = 0; n + 1 < fields.length; n += 2) payload[fields[n]!] = fields[n + 1]!
    const envelope = { id: entryId, payload_keys: Object.keys(payload), request_id: null }
    await this.#store(stream, group, entryId, {
      envelope: JSON.stringify(envelope),
      payload: JSON.stringify(payload),
      event: stream.replace(streamOf(''), ''),
      group,
      subscriber: subscriberOf(group),
      error: `It is no event: ${why}`,
      attempts: 0,
      blackBox: null,
    })
  }

  /** Tries until the store has the letter. When this process ends before, the entry is still pending and is delivered again. */
  async #store(
    stream: string,
    group: string,
    entryId: string,
    letter: Parameters<StreamDeadLetters['add']>[0],
  ): Promise<void> {
    this.#storing++
    await retryWhile(
      () => !this.#isClosed,
      () => this.#options.letters.add(letter, { stream, group, entryId }),
      { pauseMs: RETRY_MS },
    )
    this.#storing--
    this.#confirmed(stream, group, [entryId])
  }

  close(): void {
    this.#isClosed = true
    this.#acks.close()
  }
}

interface HubStreamsOptions {
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
      deliver: (stream, entry, share, onEnded) => {
        if (entry.replica !== replica) received(entry.frame)
        return this.failedDeliveries.deliverClaimed(stream, entry, share, onEnded)
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
