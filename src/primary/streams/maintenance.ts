import type { LogLevel } from '../../contracts/logger.ts'
import { ensureGroup, isNoGroup } from '../../runtime/streams/consumers.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { type HubStreams, handOver, releaseEntries, renewLeases } from './hub-streams.ts'
import { groupKey } from './reading-thread.ts'
import type { ReadingThreads } from './reading-threads.ts'
import { markGroupsSeen } from './trimmer.ts'

/** Entries that others have left are looked for at least this often, milliseconds. */
const CLAIM_EVERY_MAX_MS = 5000
/** How often this process marks its groups as having a subscriber, milliseconds. */
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
  /** False when this process does not have its name: entries under it belong to another process. */
  isOurs: () => boolean
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** The regular work on the streams. It runs in the primary, which no handler of a lane can block. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  readonly #timers: NodeJS.Timeout[] = []

  constructor(options: MaintenanceOptions) {
    this.#options = options
  }

  start(): void {
    const { claimIdleMs } = this.#options
    // Three times within the idle time: one may fail.
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
          // The connection logs that it is lost, and the work is done again.
        })
        .finally(() => {
          isRunning = false
        })
    }, everyMs)
    this.#timers.push(timer.unref())
  }

  /** Also called when the store is back, before others take this process for dead. */
  async renew(): Promise<void> {
    const { redis, claimIdleMs, threads, hub, isOurs } = this.#options
    if (!isOurs()) return
    const own = threads.consumers()
    await Promise.all(
      threads
        .pendingStreamGroups()
        .map(({ stream, group }) => renewLeases(redis, stream, group, own, Math.max(1, claimIdleMs / 4))),
    )
    // Only the entries that the hub still has: those that it has given back must not look alive.
    await Promise.all(
      hub.claimed
        .all()
        .map(({ stream, group, ids }) =>
          handOver(redis, { stream, group, ids }, { from: hub.consumer, to: hub.consumer }),
        ),
    )
  }

  async #claim(): Promise<void> {
    const { redis, threads, hub, claimIdleMs, mayTakeOver } = this.#options
    const remade: string[] = []
    for (const streamGroup of threads.streamGroups()) {
      const { stream, group } = streamGroup
      if (!mayTakeOver()) return
      // The reader of a broadcast group sees to it itself.
      if (streamGroup.isBroadcast || hub.claimed.isFull(stream, group)) continue
      try {
        await hub.claimer.claimIdle(stream, group, claimIdleMs)
      } catch (fault) {
        // One broken stream does not stop the work on the others; the trimmer reports it.
        if (!isNoGroup(fault)) continue
        // From the beginning: all that is there has come since. And a request must find a subscriber.
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

  /** Marks the groups as having a subscriber: groups without one for long are deleted. */
  async markSeen(): Promise<void> {
    await markGroupsSeen(
      this.#options.redis,
      this.#options.threads.streamGroups().filter(({ isBroadcast }) => !isBroadcast),
    )
  }

  /** Releases the entries of the threads, of dead consumers and of the hub: the next replica that claims gets them. */
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
        consumers.map((consumer) => releaseEntries(redis, { stream, group, ids: 'all' }, consumer)),
      ),
    )
  }
}
