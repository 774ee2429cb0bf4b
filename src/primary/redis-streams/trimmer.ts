// Trims streams, and reports lost entries.

import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { Reminder, RepeatingTask } from '../../core/schedule/repeating-task.ts'
import {
  compareEntryIds,
  consumerOfBroadcast,
  EVENT_PREFIX,
  idAfter,
  RELEASED,
  replicaOfConsumer,
  UP_SINCE,
} from '../../runtime/redis-streams/keys.ts'
import {
  type GroupInfo,
  ignoreNoGroup,
  listConsumers,
  listGroups,
  SCRIPTS,
  serverMs,
  touch,
} from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Maximum number of pending entries counted after a cut. */
const COUNTED_MAX = 10_000
/** Age below which a stream without groups keeps its entries, milliseconds: a group may be about to be created. */
const UNREAD_KEEP_MS = 10_000
/** Interval between two trims of every stream, milliseconds. */
const TRIM_MS = 1000
/** Interval between two checks of groups and consumers, milliseconds. */
const TIDY_MS = 15_000
/** Time after which a consumer that was not seen is gone, milliseconds. */
const GONE_MS = 300_000
/** Time without a subscriber after which a group is destroyed, milliseconds. */
const GROUP_KEEP_MS = 7 * 86_400_000
/** After a longer time without any replica, the time of all groups begins again, milliseconds: a service keeps them while it is off. */
const OFF_MAX_MS = GROUP_KEEP_MS / 2
/** Maximum number of delayed events moved in one step: it blocks the server. */
const DELAYED_BATCH = 32
/** Pause before one that cannot be moved is tried again, milliseconds. */
const POSTPONE_MS = 60_000
/** Interval between two searches for streams unknown to this process, milliseconds. */
const SEARCH_MS = 3_600_000
const SEARCH_PAGE = 1000
/** Number of kept entries above which a group without a living subscriber is reported, at most once in REMINDER_MS. */
const HELD_UP_MIN = 10_000
const REMINDER_MS = 3_600_000

/** Entries the cap has cut although a group needed them. */
interface Loss {
  readonly group: string
  /** Approximate number of entries never delivered to it. */
  readonly missed: number
  /** Number of pending entries, at most COUNTED_MAX: they are lost if they fail now. */
  readonly inHand: number
}

/**
 * Removes the entries no group needs any more: all before the oldest one pending or not yet delivered in any group.
 * Safe at any time, from any number of replicas: what a group needs only moves forward.
 * @param maxLen above this number the oldest entries are cut, even when they are needed
 * @returns the losses by this cut
 */
export async function trimStream(redis: RedisClient, stream: string, maxLen?: number): Promise<Loss[]> {
  const groups = await listGroups(redis, stream)
  const needed = await Promise.all(groups.map((group) => oldestNeeded(redis, stream, group)))
  // Without groups: one may be about to be created.
  if (needed.length === 0) needed.push(`${Math.max(0, (await serverMs(redis)) - UNREAD_KEEP_MS)}`)
  await redis.command('xtrim', [stream, 'MINID', '=', needed.sort(compareEntryIds)[0]!])
  if (maxLen === undefined) return []
  const cut = await redis.command<number>('xtrim', [stream, 'MAXLEN', '=', maxLen])
  if (cut === 0) return []
  const [first] = await redis.command<[id: string][]>('xrange', [stream, '-', '+', 'COUNT', 1])
  const losses = await Promise.all(groups.map((group) => lossOf(redis, stream, group, cut, maxLen, first?.[0] ?? '+')))
  return losses.filter(({ missed, inHand }) => missed > 0 || inHand > 0)
}

async function oldestNeeded(redis: RedisClient, stream: string, group: GroupInfo): Promise<string> {
  const next = idAfter(group.lastDeliveredId)
  if (group.pending === 0) return next
  const [, oldest] = await redis.command<[count: number, oldest: string | null]>('xpending', [stream, group.name])
  return oldest ?? next
}

/** @param first id of the first entry left */
async function lossOf(
  redis: RedisClient,
  stream: string,
  { name: group, pending, lastDeliveredId, lag }: GroupInfo,
  cut: number,
  left: number,
  first: string,
): Promise<Loss> {
  // The lag may count entries cut earlier, which are no longer in the stream.
  const isBehind = lag === null ? compareEntryIds(lastDeliveredId, first) < 0 : lag > left
  const missed = isBehind ? Math.min(lag ?? Number.POSITIVE_INFINITY, left + cut) - left : 0
  const args = [stream, group, '-', first === '+' ? first : `(${first}`, COUNTED_MAX]
  const inHand = pending === 0 ? 0 : (await redis.command<unknown[]>('xpending', args)).length
  return { group, missed, inHand }
}

/** Moves due events of an earlier checkout into their streams, as long as there are any: it kept delayed events apart. */
export async function releaseDelayed(redis: RedisClient): Promise<void> {
  const limits = [DELAYED_BATCH, POSTPONE_MS]
  while ((await redis.run<number>(SCRIPTS.releaseDelayed, ['heddle:delayed'], limits)) === DELAYED_BATCH);
}

interface Options {
  /** The streams this process publishes to or reads. The streams of other replicas are found in the store. */
  streams: () => Iterable<string>
  log: (level: LogLevel, message: string, fields: Record<string, unknown>) => void
  /** Maximum number of entries of a stream: the oldest are cut, even when they are needed. */
  maxLen?: number
  /** Default GONE_MS and GROUP_KEEP_MS. */
  goneMs?: number
  keepMs?: number
}

/** Keeps the streams as short as possible, and moves delayed events of an earlier checkout into them. Every replica has a trimmer; two at once do no harm. */
export class Trimmer {
  readonly #redis: RedisClient
  readonly #options: Options
  readonly #task = new RepeatingTask(() => this.#look())
  readonly #reminder = new Reminder(REMINDER_MS)
  readonly #goneMs: number
  readonly #keepMs: number
  /** Time of the next check of groups and consumers, by the steady clock. */
  #tidyMs = 0
  /** Time of the last one, by the server's clock. */
  #tidiedMs = 0
  #searchedMs = Number.NEGATIVE_INFINITY
  readonly #found = new Set<string>()

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
    this.#goneMs = options.goneMs ?? GONE_MS
    this.#keepMs = options.keepMs ?? GROUP_KEEP_MS
  }

  start(): void {
    this.#task.start(TRIM_MS)
  }

  /** Resolves when work in progress has ended. */
  stop(): Promise<void> {
    return this.#task.stop()
  }

  /** After a failover the server may not know when it last saw a consumer. */
  reconnected(): void {
    this.#tidiedMs = 0
  }

  /** Trims every stream once. */
  async trim(): Promise<void> {
    await this.#eachStream(async (stream) => {
      for (const { group, missed, inHand } of await trimStream(this.#redis, stream, this.#options.maxLen)) {
        const message = `EVENT_BUS_STREAM_MAXLEN has cut entries of ${stream} that a subscriber had not finished: about ${missed} were never delivered`
        this.#options.log('ERROR', message, { group, missed, in_hand: inHand })
      }
    })
  }

  /** Destroys unneeded groups and removes consumers that are gone, once. */
  async tidy(): Promise<void> {
    await this.#search()
    const nowMs = await serverMs(this.#redis)
    // After an outage of the store or a jump of its clock, nobody was seen for long: the others get until the next time.
    const isSettled = Math.abs(nowMs - this.#tidiedMs) < 2 * TIDY_MS
    this.#tidiedMs = nowMs
    const up = await this.#redis.command<string | null>('set', [UP_SINCE, nowMs, 'NX', 'GET', 'PX', OFF_MAX_MS])
    await this.#redis.command('pexpire', [UP_SINCE, OFF_MAX_MS])
    const mayRetire = nowMs - Number(up ?? nowMs) >= this.#keepMs
    if (!isSettled) return
    await this.#eachStream(async (stream) => {
      const groups = await listGroups(this.#redis, stream)
      // Another replica may have destroyed one meanwhile.
      await Promise.all(groups.map((group) => this.#tidyGroup(stream, group, mayRetire).catch(ignoreNoGroup)))
    })
  }

  async #tidyGroup(stream: string, group: GroupInfo, mayRetire: boolean): Promise<void> {
    const { name } = group
    const alone = consumerOfBroadcast(name)
    if (alone !== null && replicaOfConsumer(alone) === null) return
    const consumers = await listConsumers(this.#redis, stream, name)
    // Its time begins.
    if (consumers.length === 0) await touch(this.#redis, stream, name, alone ?? RELEASED)
    const unseenMs = Math.min(...consumers.map(({ idleMs }) => idleMs))
    // The one seen last tells how long the group has had no subscriber.
    for (const { name: consumer, idleMs, pending } of consumers)
      if (idleMs > this.#goneMs && idleMs > unseenMs && pending === 0)
        await this.#drop(stream, name, consumer, this.#goneMs)
    if (unseenMs <= this.#goneMs || consumers.length === 0) return
    if (alone !== null) await this.#drop(stream, name, '', this.#goneMs)
    else if (unseenMs > this.#keepMs && mayRetire) await this.#retire(stream, group)
    else await this.#remind(stream, group)
  }

  async #drop(stream: string, group: string, consumer: string, unseenMs: number): Promise<boolean> {
    return (await this.#redis.run<number>(SCRIPTS.dropUnseen, [stream], [group, consumer, unseenMs])) === 1
  }

  async #retire(stream: string, group: GroupInfo): Promise<void> {
    const waiting = await this.#waiting(stream, group)
    if (!(await this.#drop(stream, group.name, '', this.#keepMs))) return
    const message = `A group of ${stream} without a subscriber for 7 days was deleted`
    this.#options.log('WARNING', message, { group: group.name, waiting })
  }

  async #remind(stream: string, group: GroupInfo): Promise<void> {
    const waiting = await this.#waiting(stream, group)
    if (waiting <= HELD_UP_MIN || !this.#reminder.isDue(`held up ${stream} ${group.name}`)) return
    const message = `${waiting} entries of ${stream} wait for a subscriber no replica has: deploy it again, or delete its group (XGROUP DESTROY ${stream} ${group.name})`
    this.#options.log('WARNING', message, { group: group.name, waiting })
  }

  async #waiting(stream: string, { lag, pending }: GroupInfo): Promise<number> {
    return pending + (lag ?? (await this.#redis.command<number>('xlen', [stream])))
  }

  /** Finds the streams of other replicas. */
  async #search(): Promise<void> {
    if (performance.now() - this.#searchedMs < SEARCH_MS) return
    let cursor = '0'
    do {
      const args = [cursor, 'MATCH', `${EVENT_PREFIX}*`, 'COUNT', SEARCH_PAGE, 'TYPE', 'stream']
      const [next, page] = await this.#redis.command<[string, string[]]>('scan', args)
      for (const stream of page) this.#found.add(stream)
      cursor = next
    } while (cursor !== '0' && !this.#task.isStopped)
    this.#searchedMs = performance.now()
  }

  /** A broken stream does not stop the work on the others. */
  async #eachStream(look: (stream: string) => Promise<void>): Promise<void> {
    const streams = new Set([...this.#found, ...this.#options.streams()])
    await Promise.all(
      [...streams].map((stream) =>
        look(stream).catch((fault: unknown) => {
          if (fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE') throw fault
          this.#tellFault(stream, fault)
        }),
      ),
    )
  }

  #tellFault(stream: string, fault: unknown): void {
    if (this.#reminder.isDue(`fault ${stream}`))
      this.#options.log('WARNING', `${stream} cannot be trimmed or checked: ${messageOf(fault)}`, {})
  }

  /** @returns time until the next run, milliseconds */
  async #look(): Promise<number> {
    try {
      await releaseDelayed(this.#redis)
      await this.trim()
      if (performance.now() < this.#tidyMs) return TRIM_MS
      this.#tidyMs = performance.now() + TIDY_MS
      await this.tidy()
    } catch (fault) {
      // The connection logs its loss, and a stream that is not trimmed for a while only grows.
      if (!(fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE')) {
        this.#tellFault(UP_SINCE, fault)
      }
    }
    return TRIM_MS
  }
}
