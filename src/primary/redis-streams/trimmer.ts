// Trims streams, and reports lost entries.

import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { Reminder, RepeatingTask } from '../../core/schedule/repeating-task.ts'
import {
  compareEntryIds,
  consumerOfBroadcast,
  EVENT_PREFIX,
  eventOf,
  GROUPS_SEEN,
  groupOfSeenField,
  idAfter,
  replicaKey,
  replicaOfConsumer,
  seenField,
} from '../../runtime/redis-streams/keys.ts'
import {
  type GroupInfo,
  listConsumers,
  listGroups,
  removeConsumer,
  SCRIPTS,
  serverMs,
} from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { releaseDelayed } from './older-release.ts'

/** Maximum number of pending entries counted after a cut. */
const COUNTED_MAX = 10_000
/** Age below which a stream without groups keeps its entries, milliseconds: a group may be about to be created. */
const UNREAD_KEEP_MS = 10_000
/** Time without a subscriber after which a group is destroyed, milliseconds. */
export const GROUP_KEEP_MS = 7 * 86_400_000
/** Time since its last mark after which a group has no living subscriber, milliseconds: call `markGroupsSeen` several times within it. */
export const GROUP_UNSEEN_MS = 300_000

/** Time without a trimmer that proves that no replica ran, milliseconds: a service keeps its groups while it is switched off. */
const ABSENCE_MS = 600_000

/** A group of a stream. */
interface GroupRef {
  readonly stream: string
  readonly group: string
}

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

/** Marks these groups as having a living subscriber. */
export async function markGroupsSeen(redis: RedisClient, groups: readonly GroupRef[]): Promise<void> {
  if (groups.length === 0) return
  await redis.run(
    SCRIPTS.markGroupsSeen,
    [GROUPS_SEEN],
    groups.map(({ stream, group }) => seenField(stream, group)),
  )
}

interface UnseenGroup extends GroupRef {
  /** True when it had no subscriber for GROUP_KEEP_MS. */
  readonly isDestroyed: boolean
  readonly unseenMs: number
  /** Number of entries kept for it. */
  readonly waiting: number
}

/** Destroys the groups of a stream without a subscriber for GROUP_KEEP_MS. @returns these groups, and all others without a living subscriber */
export async function retireGroups(redis: RedisClient, stream: string): Promise<UnseenGroup[]> {
  const reply = await redis.run<[group: string, isDestroyed: number, unseenMs: number, waiting: number][]>(
    SCRIPTS.retireGroups,
    [stream, GROUPS_SEEN],
    [GROUP_KEEP_MS, GROUP_UNSEEN_MS, ABSENCE_MS],
  )
  return reply.map(([group, isDestroyed, unseenMs, waiting]) => ({
    stream,
    group,
    isDestroyed: isDestroyed === 1,
    unseenMs,
    waiting,
  }))
}

/** Destroys the group of one thread, unless the thread's replica lives. */
async function destroyBroadcastGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  replicaId: string,
): Promise<boolean> {
  return (await redis.run<number>(SCRIPTS.destroyBroadcast, [stream, replicaKey(replicaId)], [group])) === 1
}

/** Interval between two trims of every stream, milliseconds. */
const TRIM_MS = 1000
/** Interval between two checks of groups and consumers, milliseconds. */
const TIDY_MS = 15_000
/** Checks in a row without its key after which a replica counts as gone: all keys expire when the server stands still. */
const GONE_LOOKS = 4
/** Interval between two searches for streams unknown to this process, milliseconds. */
const SEARCH_MS = 3_600_000
const SEARCH_PAGE = 1000
/** Number of kept entries above which a group without a living subscriber is reported, at most once in REMINDER_MS. */
const HELD_UP_MIN = 10_000
const REMINDER_MS = 3_600_000

interface Options {
  /** The streams this process publishes to or reads. The streams of other replicas are found in the store. */
  streams: () => Iterable<string>
  log: (level: LogLevel, message: string, fields: Record<string, unknown>) => void
  /** Maximum number of entries of a stream: the oldest are cut, even when they are needed. */
  maxLen?: number
}

/** Keeps the streams as short as possible, and moves delayed events of an earlier checkout into them. Every replica has a trimmer; two at once do no harm. */
export class Trimmer {
  readonly #redis: RedisClient
  readonly #options: Options
  readonly #task = new RepeatingTask(() => this.#look())
  readonly #reminder = new Reminder(REMINDER_MS)
  #tidiedMs = Number.NEGATIVE_INFINITY
  #searchedMs = Number.NEGATIVE_INFINITY
  readonly #found = new Set<string>()
  /** By replica, the number of checks in a row without its key. */
  readonly #missing = new Map<string, number>()

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
  }

  start(): void {
    this.#task.start(TRIM_MS)
  }

  /** Resolves when work in progress has ended. */
  stop(): Promise<void> {
    return this.#task.stop()
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

  /** Destroys unneeded groups and removes consumers of gone replicas, once. */
  async tidy(): Promise<void> {
    await this.#findStreams()
    const threads = await this.#threads()
    const gone = await this.#goneReplicas(threads)
    await this.#eachStream(async (stream) => {
      for (const unseen of await retireGroups(this.#redis, stream)) this.#tellUnseen(unseen)
      await Promise.all((threads.get(stream) ?? []).map((thread) => this.#remove(stream, thread, gone)))
    })
  }

  async #remove(
    stream: string,
    { group, consumer, isBroadcast, pending }: GroupConsumer,
    gone: ReadonlySet<string>,
  ): Promise<void> {
    const replica = replicaOfConsumer(consumer)
    if (replica === null || !gone.has(replica)) return
    if (isBroadcast) await destroyBroadcastGroup(this.#redis, stream, group, replica)
    else if (pending === 0) await removeConsumer(this.#redis, stream, group, consumer)
  }

  /** The consumers of all groups, by stream. */
  async #threads(): Promise<Map<string, GroupConsumer[]>> {
    const threads = new Map<string, GroupConsumer[]>()
    await this.#eachStream(async (stream) => {
      const groups = await listGroups(this.#redis, stream)
      const found = await Promise.all(
        groups.map(async ({ name: group }): Promise<GroupConsumer[]> => {
          const alone = consumerOfBroadcast(group)
          if (alone !== null) return [{ group, consumer: alone, isBroadcast: true, pending: 0 }]
          const consumers = await listConsumers(this.#redis, stream, group)
          return consumers.map(({ name, pending }) => ({ group, consumer: name, isBroadcast: false, pending }))
        }),
      )
      threads.set(stream, found.flat())
    })
    return threads
  }

  async #goneReplicas(threads: Map<string, GroupConsumer[]>): Promise<Set<string>> {
    const replicas = new Set([...threads.values()].flat().map(({ consumer }) => replicaOfConsumer(consumer)))
    for (const replica of this.#missing.keys()) if (!replicas.has(replica)) this.#missing.delete(replica)
    const gone = new Set<string>()
    await Promise.all(
      [...replicas].map(async (replica) => {
        if (replica === null) return
        const exists = await this.#redis.command<number>('exists', [replicaKey(replica)])
        const looks = exists === 1 ? 0 : (this.#missing.get(replica) ?? 0) + 1
        this.#missing.set(replica, looks)
        if (looks >= GONE_LOOKS) gone.add(replica)
      }),
    )
    return gone
  }

  /** Finds the streams of other replicas: streams with groups by their groups, the rest by a search at intervals. */
  async #findStreams(): Promise<void> {
    const seen = await this.#redis.command<Record<string, string>>('hgetall', [GROUPS_SEEN])
    for (const [field, seenMs] of Object.entries(seen)) {
      if (Date.now() - Number(seenMs) > 2 * GROUP_KEEP_MS) await this.#redis.command('hdel', [GROUPS_SEEN, field])
      const named = groupOfSeenField(field)
      if (named !== null && eventOf(named.stream) !== null) this.#found.add(named.stream)
    }
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

  #tellUnseen({ stream, group, waiting, isDestroyed }: UnseenGroup): void {
    const { log } = this.#options
    if (isDestroyed) {
      log('WARNING', `A group of ${stream} without a subscriber for 7 days was deleted`, {
        group,
        waiting,
      })
    } else if (waiting > HELD_UP_MIN && this.#reminder.isDue(`held up ${seenField(stream, group)}`)) {
      const message = `${waiting} entries of ${stream} wait for a subscriber no replica has: deploy it again, or delete its group (XGROUP DESTROY ${stream} ${group})`
      log('WARNING', message, { group, waiting })
    }
  }

  #tellFault(stream: string, fault: unknown): void {
    if (this.#reminder.isDue(`fault ${stream}`))
      this.#options.log('WARNING', `${stream} cannot be trimmed or checked: ${messageOf(fault)}`, {})
  }

  /** @returns time until the next run, milliseconds */
  async #look(): Promise<number> {
    try {
      if (performance.now() - this.#tidiedMs >= TIDY_MS) {
        await this.tidy()
        this.#tidiedMs = performance.now()
      }
      await releaseDelayed(this.#redis)
      await this.trim()
    } catch (fault) {
      // The connection logs its loss, and a stream that is not trimmed for a while only grows.
      if (!(fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE')) {
        this.#tellFault(GROUPS_SEEN, fault)
      }
    }
    return TRIM_MS
  }
}

/** A consumer of a group. */
interface GroupConsumer {
  group: string
  consumer: string
  /** True when the group belongs to the consumer alone. */
  isBroadcast: boolean
  pending: number
}
