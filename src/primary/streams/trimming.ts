import { GROUPS_SEEN, REMOVED, replicaKey, seenField } from '../../runtime/streams/keys.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** A stream without groups keeps entries that are younger, milliseconds: a group may be about to be created. */
export const UNREAD_KEEP_MS = 10_000
/** Groups without a subscriber for so long are destroyed, milliseconds. */
export const GROUP_KEEP_MS = 7 * 86_400_000
/** A group that was not marked as seen for so long has no living subscriber, milliseconds: call `markGroupsSeen` several times within it. */
export const GROUP_UNSEEN_MS = 300_000

/** When no trimmer ran for so long, no replica ran, milliseconds: a service that was switched off finds its groups as it left them. */
const ABSENCE_MS = 600_000

export interface GroupRef {
  readonly stream: string
  readonly group: string
}

/** Entries that a group has lost because the stream was cut although the group needed them. */
export interface Loss extends GroupRef {
  /** About how many were never delivered to it. */
  readonly missed: number
  /** About how many are pending: they are lost if they fail now. */
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
 * Removes the entries that no group needs any more: those before the oldest one that is pending or not yet delivered in any group.
 * Safe at any time, from any number of replicas.
 * @param maxLen the oldest entries beyond so many are cut, even when they are needed. Losses by this cap are always reported, losses by
 *   a MAXLEN of XADD only when the group is still behind the cut at the next call: so prefer this cap.
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

/** Marks these groups as having a living subscriber. */
export async function markGroupsSeen(redis: RedisClient, groups: readonly GroupRef[]): Promise<void> {
  if (groups.length === 0) return
  await redis.run(
    SCRIPTS.markGroupsSeen,
    [GROUPS_SEEN],
    groups.map(({ stream, group }) => seenField(stream, group)),
  )
}

export interface UnseenGroup extends GroupRef {
  /** True when it had no subscriber for GROUP_KEEP_MS. */
  readonly isDestroyed: boolean
  readonly unseenMs: number
  /** Entries that were kept for it. */
  readonly waiting: number
}

/** Destroys the groups of a stream without a subscriber for GROUP_KEEP_MS. @returns these groups, and all others without a living one */
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
