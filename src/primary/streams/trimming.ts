import { GROUPS_SEEN, REMOVED, replicaKey, seenField } from '../../runtime/streams/keys.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** A stream that no group reads keeps what is no older: a group may be about to be created. */
export const UNREAD_KEEP_MS = 10_000
/** Groups that nobody has subscribed to for so long are destroyed. */
export const GROUP_KEEP_MS = 7 * 86_400_000
/** A group that no replica has spoken of for so long has no living subscriber: call `seeGroups` several times in it. */
export const GROUP_UNSEEN_MS = 300_000

/** When nobody has looked for so long, nobody ran: a service that was switched off finds its groups as it left them. */
const ABSENCE_MS = 600_000

export interface GroupRef {
  readonly stream: string
  readonly group: string
}

/** What a group has lost because the stream was cut although it needed the entries. */
export interface Loss extends GroupRef {
  /** About how many it was never given. */
  readonly missed: number
  /** About how many it has in hand: they are lost if they fail now. */
  readonly inHand: number
}

export interface Trimmed {
  /** Entries that nobody needed. */
  readonly trimmed: number
  /** Entries that the cap has cut. */
  readonly cut: number
  readonly losses: Loss[]
}

/**
 * Removes what no group needs any more: up to the oldest entry that is pending, or was not delivered yet, in any group.
 * Safe at any time, from any number of replicas.
 * @param maxLen beyond so many entries the oldest are cut even when they are needed. Losses by this cap are always told, those by
 *   a MAXLEN of XADD only when the group is still behind the cut as this looks: so rather cap here.
 */
export async function trimStream(redis: RedisClient, stream: string, maxLen?: number): Promise<Trimmed> {
  const reply = await redis.run<[number, number, ...(readonly [string, number, number])[]]>(
    SCRIPTS.trim,
    [stream, REMOVED],
    [maxLen ?? '', UNREAD_KEEP_MS],
  )
  const [trimmed, cut, ...losses] = reply
  return { trimmed, cut, losses: losses.map(([group, missed, inHand]) => ({ stream, group, missed, inHand })) }
}

/** Says that these groups have a living subscriber. */
export async function markGroupsSeen(redis: RedisClient, groups: readonly GroupRef[]): Promise<void> {
  if (groups.length === 0) return
  await redis.run(
    SCRIPTS.seeGroups,
    [GROUPS_SEEN],
    groups.map(({ stream, group }) => seenField(stream, group)),
  )
}

export interface UnseenGroup extends GroupRef {
  /** Nobody had subscribed to it for GROUP_KEEP_MS. */
  readonly isDestroyed: boolean
  readonly unseenMs: number
  /** Entries that were kept for it. */
  readonly waiting: number
}

/** Destroys the groups of a stream that have had no subscriber for GROUP_KEEP_MS. @returns those, and all without a living one */
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
export async function destroyBroadcastGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  replicaId: string,
): Promise<boolean> {
  return (await redis.run<number>(SCRIPTS.destroyBroadcast, [stream, replicaKey(replicaId)], [group])) === 1
}
