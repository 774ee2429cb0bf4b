import type { LogLevel } from '../../contracts/logger.ts'
import { ensureGroup, isNoGroup } from '../../runtime/streams/consumers.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { HubStreams } from './hub-streams.ts'
import { handOver, releaseEntries, renewLeases } from './leases.ts'
import type { ReadingThreads } from './reading-threads.ts'
import { groupKey } from './stream-group.ts'
import { markGroupsSeen } from './trimming.ts'

/** Between two looks for what others have left, milliseconds: at most. */
const CLAIM_EVERY_MAX_MS = 5000
/** So often it is said which groups have a subscriber, milliseconds. */
const SEEN_EVERY_MS = 60_000
/** Groups that a log line names. */
const SHOWN_MAX = 20

export interface MaintenanceOptions {
  redis: RedisClient
  /** EVENT_BUS_CLAIM_IDLE_MS. */
  claimIdleMs: number
  threads: ReadingThreads
  hub: HubStreams
  /** False when this process begins nothing any more. */
  mayTakeOver: () => boolean
  /** False when this process does not have its name: what stands under it is somebody else's. */
  isOurs: () => boolean
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** What has to be done for the streams from time to time, whatever the handlers do: it runs in the primary, which none of them can block. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  readonly #timers: NodeJS.Timeout[] = []

  constructor(options: MaintenanceOptions) {
    this.#options = options
  }

  start(): void {
    const { claimIdleMs } = this.#options
    // Three times within the idle time of others: one may fail.
    this.#every(Math.max(10, claimIdleMs / 3), () => this.renew())
    this.#every(Math.min(CLAIM_EVERY_MAX_MS, Math.max(25, claimIdleMs / 4)), () => this.#claim())
    this.#every(SEEN_EVERY_MS, () => this.markSeen())
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  #every(everyMs: number, work: () => Promise<void>): void {
    let isRunning = false
    const timer = setInterval(() => {
      if (isRunning || !this.#options.redis.isReady) return
      isRunning = true
      work()
        .catch(() => {
          // The connection tells of itself, and it is done again.
        })
        .finally(() => {
          isRunning = false
        })
    }, everyMs)
    this.#timers.push(timer.unref())
  }

  /** Also called when the store is back: before others think that nobody lives here. */
  async renew(): Promise<void> {
    const { redis, claimIdleMs, threads, hub, isOurs } = this.#options
    if (!isOurs()) return
    const own = threads.consumers()
    await Promise.all(
      threads
        .pendingStreamGroups()
        .map(({ stream, group }) => renewLeases(redis, stream, group, own, Math.max(1, claimIdleMs / 4))),
    )
    // Of the hub these alone: what it has given back must not look alive.
    await Promise.all(
      hub.claimed
        .all()
        .map(({ stream, group, ids }) => handOver(redis, stream, group, ids, hub.consumer, hub.consumer)),
    )
  }

  async #claim(): Promise<void> {
    const { redis, threads, hub, claimIdleMs, mayTakeOver } = this.#options
    const remade: string[] = []
    for (const streamGroup of threads.streamGroups()) {
      const { stream, group } = streamGroup
      if (!mayTakeOver()) return
      // A group of one thread alone is its reader's affair.
      if (streamGroup.isBroadcast || hub.claimed.isFull(stream, group)) continue
      try {
        await hub.claimer.claimIdle(stream, group, claimIdleMs)
      } catch (fault) {
        // A stream in trouble does not keep the others from being looked after; the trimmer tells of it.
        if (!isNoGroup(fault)) continue
        // Whatever is there has come since; and whoever asks for a reply must find a subscriber.
        await ensureGroup(redis, stream, group, '0')
        remade.push(groupKey(stream, group))
      }
    }
    if (remade.length === 0) return
    this.#options.log(
      'WARNING',
      `${remade.length} groups had gone from the key-value store and were made anew: was it emptied, or did it start without its data?`,
      { groups: remade.slice(0, SHOWN_MAX) },
    )
  }

  /** Groups that nobody is seen to subscribe as for long are deleted. */
  async markSeen(): Promise<void> {
    await markGroupsSeen(
      this.#options.redis,
      this.#options.threads.streamGroups().filter(({ isBroadcast }) => !isBroadcast),
    )
  }

  /** Puts down what the threads, those that are gone and the hub still have in hand: whoever claims next gets it. */
  async release(): Promise<void> {
    const { redis, threads, hub, isOurs } = this.#options
    if (!isOurs()) return
    const consumers = [...threads.consumers(), ...threads.deadConsumers(), hub.consumer]
    const streamGroups = new Map(
      [...threads.pendingStreamGroups(), ...hub.claimed.all()].map((streamGroup) => [
        groupKey(streamGroup.stream, streamGroup.group),
        streamGroup,
      ]),
    )
    await Promise.all(
      [...streamGroups.values()].flatMap(({ stream, group }) =>
        consumers.map((consumer) => releaseEntries(redis, stream, group, consumer, 'all')),
      ),
    )
  }
}
