/// <reference lib="es2024.collection" />

// Events of a process over Redis Streams.

import { setTimeout as sleep } from 'node:timers/promises'
import type { CancelTarget } from '../../contracts/events.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import { consumerOf, streamOf } from '../../runtime/redis-streams/keys.ts'
import { ThreadPublisher } from '../../runtime/redis-streams/publisher.ts'
import { listGroups } from '../../runtime/redis-streams/stream-commands.ts'
import { RedisClient } from '../../stores/redis/client.ts'
import { WriteProbe } from '../../stores/redis/write-probe.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { DeadLetters } from '../events/dead-letters.ts'
import type { Hub } from '../events/hub.ts'
import { StreamClaims } from './claims.ts'
import { ReplicaLock } from './replica-lock.ts'
import { StreamSettlements } from './settlements.ts'
import { StreamCancels } from './stream-cancels.ts'
import { StreamDeliveries } from './stream-deliveries.ts'
import { StreamDriver } from './stream-driver.ts'
import type { StreamProcess } from './stream-group.ts'
import { isUnanswered, StreamReader } from './stream-reader.ts'
import { Trimmer } from './trimmer.ts'

/** Pause before a command refused by the store is repeated, milliseconds. */
const RETRY_MS = 500
/** Interval of the checks for open groups at the start, milliseconds. */
const OPEN_LOOK_MS = 5

export interface RedisLogOptions {
  settings: Settings
  hub: Hub
  /** The dead letters in the database. */
  stored: DeadLetters
  /** Stores an event in the database. */
  store: (event: EventFrame, origin: SubscriberThread | null) => Promise<string>
  /** A thread of this process reports that the store has not taken an event. */
  refused: () => void
  /** Number of these reports. */
  refusals: () => number
  /** Another process has this REPLICA_ID: this process must end. */
  onReplicaLost: (message: string) => void
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/**
 * The streams of a process, in its primary: reads the groups with subscribers in the hub, gives the hub their events, and settles
 * their entries in the store.
 */
export class RedisLog {
  readonly driver: StreamDriver
  readonly #options: RedisLogOptions
  readonly #own: ThreadPublisher
  readonly #redis: RedisClient
  /** For messages: of new entries, and replies. */
  readonly #listening: RedisClient
  readonly #lock: ReplicaLock
  readonly #probe: WriteProbe
  readonly #settlements: StreamSettlements
  readonly #cancels: StreamCancels
  readonly #deliveries: StreamDeliveries
  readonly #claims: StreamClaims
  readonly #reader: StreamReader
  readonly #trimmer: Trimmer
  /** The store's refusal of this process's name, while the store answers. */
  #refusal: string | null = null
  #isBooted = false
  #wasOpen = false
  #isStopping = false

  constructor(options: RedisLogOptions) {
    this.#options = options
    const { settings, hub, log } = options
    const { replicaId: replica } = settings
    const consumer = consumerOf(replica)

    // ── connections, and the name of this process ──
    const { refused, refusals } = options
    this.#own = new ThreadPublisher({ settings, role: 'primary', published: () => {}, refused, log })
    const { redis } = this.#own
    this.#redis = redis
    const write = () => redis.command('set', [`heddle:probe:${replica}`, '1', 'PX', 1000])
    this.#probe = new WriteProbe({ refusals, write, log })
    // The connection of the primary logs the state of the store; this one would repeat it.
    this.#listening = new RedisClient(settings, { name: `heddle:${replica}:listening`, log: () => {} })
    this.#lock = new ReplicaLock(redis, replica, { onLost: ({ host, pid }) => this.#lost(host, pid) })

    // ── publishing ──
    this.driver = new StreamDriver({
      settings,
      hub,
      own: this.#own,
      listening: this.#listening,
      store: options.store,
      stored: options.stored,
      onReplay: (event) => this.#cancels.revive(event),
    })

    // ── reading ──
    const isOurs = (): boolean => this.#lock.isHeld
    const own: StreamProcess = { redis, replica, consumer, isOurs, mayBegin: this.#mayBegin, log }
    this.#settlements = new StreamSettlements({
      ...own,
      deadLetters: this.driver.inRedis,
      onConfirmed: (group) => this.#reader.freed(group),
    })
    this.#cancels = new StreamCancels({ hub, redis, listening: this.#listening })
    this.#deliveries = new StreamDeliveries({ ...own, hub, cancels: this.#cancels, settlements: this.#settlements })
    this.#claims = new StreamClaims({
      ...own,
      claimIdleMs: settings.eventBusClaimIdleMs,
      groups: () => this.#reader.groups,
      lose: (group) => this.#reader.lose(group),
      deliveries: this.#deliveries,
      settlements: this.#settlements,
    })
    this.#reader = new StreamReader({
      ...own,
      hub,
      claimIdleMs: settings.eventBusClaimIdleMs,
      listening: this.#listening,
      flush: this.#settlements.flush,
      take: (group, entry) => this.#deliveries.take(group, entry),
      claimOwn: (group) => this.#claims.claimOwn(group),
    })
    this.#trimmer = new Trimmer(redis, {
      streams: () => Object.keys(hub.topology()).map(streamOf),
      log,
      maxLen: settings.eventBusStreamMaxlen,
    })
  }

  /** False once this process ends, or has lost its name. */
  readonly #mayBegin = (): boolean => !this.#isStopping && !this.#lock.isLost

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Takes the name of this replica. If the store does not answer, it keeps trying, and the process serves the rest.
   * @throws REPLICA_ID_TAKEN
   */
  async start(): Promise<void> {
    await this.#redis.opened
    try {
      await this.#takeName()
    } catch (error) {
      if (isTaken(error)) throw error
      void this.#takeNameLater(error)
    }
  }

  async #takeName(): Promise<void> {
    await this.#lock.acquire()
    this.#refusal = null
    // If the process is ending, it only gives the name back.
    if (!this.#isStopping) this.#begin()
  }

  async #takeNameLater(refusal: unknown): Promise<void> {
    this.#refused(refusal)
    while (!this.#isStopping && !this.#lock.isHeld) {
      await sleep(RETRY_MS)
      try {
        await this.#takeName()
      } catch (error) {
        if (isTaken(error)) return this.#options.onReplicaLost((error as Error).message)
        this.#refused(error)
      }
    }
  }

  #refused(error: unknown): void {
    const fault = messageOf(error)
    if (isUnanswered(error) || fault === this.#refusal) return
    this.#refusal = fault
    this.#options.log('ERROR', `The event streams cannot be used: ${fault}. Trying again until it works.`)
  }

  #begin(): void {
    // It subscribes again by itself.
    void this.#cancels.start().catch(() => {})
    this.#redis.onUp(() => {
      void this.#cancels.look()
      this.#reader.loseAll()
      this.#claims.reconnected()
      this.#trimmer.reconnected()
    })
    this.#reader.start()
    this.#probe.start()
    this.#claims.start()
    this.#trimmer.start()
  }

  #lost(host: string | undefined, pid: number | undefined): void {
    this.#endReading()
    const { settings, onReplicaLost } = this.#options
    onReplicaLost(
      `Process ${pid} on ${host} has taken the REPLICA_ID ${settings.replicaId} while this one stood still: give each replica a REPLICA_ID of its own`,
    )
  }

  /** Reason why events do not flow; null when they do. */
  get fault(): string | null {
    if (this.#redis.fault !== null) return this.#redis.fault.message
    if (this.#isOpen) return this.#probe.reason
    return this.#refusal ?? this.#reader.refusal ?? 'the groups of the event streams are not made yet'
  }

  get #isOpen(): boolean {
    return this.#lock.isHeld && this.#reader.isOpen
  }

  /** True once all groups have been open: before that, this process should get no traffic. */
  get wasOpen(): boolean {
    this.#wasOpen ||= this.#isBooted && this.#isOpen
    return this.#wasOpen
  }

  /** All plugins have booted. Resolves when all groups are open, or when the store is known to be unavailable or to refuse. */
  async opened(): Promise<void> {
    this.#isBooted = true
    const isHopeful = (): boolean =>
      this.#redis.fault === null && this.#reader.refusal === null && this.#refusal === null
    await until(() => this.wasOpen || !isHopeful() || this.#isStopping, Number.POSITIVE_INFINITY, {
      checkMs: OPEN_LOOK_MS,
    })
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Stops reading. Resolves when no entry is in hand, or at the deadline. */
  async stopReading(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    this.#options.hub.returnDelayed()
    this.#endReading()
    await until(() => this.#inHand === 0, Math.max(deadlineMs, steadyMs()))
  }

  #endReading(): void {
    this.#reader.stop()
    this.#claims.close()
  }

  get #inHand(): number {
    return this.#reader.groups.reduce((sum, { size }) => sum + size, 0)
  }

  /** Takes back what the streams have. @throws EVENT_BUS_UNAVAILABLE */
  cancel(what: CancelTarget): Promise<void> {
    return this.#cancels.cancel(what)
  }

  /** Entries that groups have not had, or that other processes have in hand. Empty while the store does not answer. */
  async backlog(): Promise<{ event: string; group: string; count: number }[]> {
    if (!this.#redis.isReady) return []
    const open = this.#reader.groups.filter(({ state }) => state !== 'closed')
    const streams = [...Map.groupBy(open, ({ stream }) => stream)]
    const found = await Promise.all(
      streams.map(async ([stream, groups]) => {
        const stored = await listGroups(this.#redis, stream).catch(() => [])
        return groups.flatMap(({ event, name, subscriber, size }) => {
          const group = stored.find((each) => each.name === name)
          if (group === undefined) return []
          return [{ event, group: subscriber, count: (group.lag ?? 0) + Math.max(0, group.pending - size) }]
        })
      }),
    )
    return found.flat()
  }

  /** Unconfirmed acknowledgements and dead letters. */
  get open(): number {
    return this.#settlements.open
  }

  /** Gives back the remaining entries and the name, and closes the connections. */
  async close(): Promise<void> {
    this.#isStopping = true
    this.#endReading()
    this.#reader.close()
    this.driver.close()
    await this.#trimmer.stop()
    if (this.#redis.isReady) {
      try {
        await this.#release()
        await this.#lock.release()
      } catch {
        // The others claim the entries after their idle time.
      }
    }
    this.#settlements.close()
    await Promise.all([this.#own.close(), this.#listening.close()])
  }

  async #release(): Promise<void> {
    if (!this.#lock.isHeld) return
    await Promise.all(
      this.#reader.groups.map(async (group) => {
        if (!group.isBroadcast) await this.#settlements.giveBack(group, group.ids)
        else await this.#redis.command('xgroup', ['DESTROY', group.stream, group.name])
      }),
    )
  }
}

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'REPLICA_ID_TAKEN'
