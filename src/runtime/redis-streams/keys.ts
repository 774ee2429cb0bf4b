// Keys of streams, and ids of their entries.

/** Compares entry ids, `<milliseconds>-<number>`: negative when `a` is older. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs, aNumber] = parts(a)
  const [bMs, bNumber] = parts(b)
  return aMs - bMs || aNumber - bNumber
}

function parts(id: string): [ms: number, number: number] {
  const dash = id.indexOf('-')
  return [Number(id.slice(0, dash)), Number(id.slice(dash + 1))]
}

/** The lowest id after this one. */
export function idAfter(id: string): string {
  const [ms, number] = id.split('-')
  return `${ms}-${BigInt(number!) + 1n}`
}

/**
 * Every name of the stream transport in the key-value store, and the functions that parse it.
 * One server, no cluster: scripts access keys they compute themselves.
 */

/** The prefix of the keys of all event streams. */
export const EVENT_PREFIX = 'heddle:event:'
const REPLICA_PREFIX = 'heddle:replica:'

/** The stream of the dead letters. */
export const DEAD_STREAM = 'heddle:dead'
/** What was taken back, and when: a sorted set. */
export const CANCELLED = 'heddle:cancelled'
export const CANCELLED_CHANNEL = 'heddle:cancelled'
/** When this service last came up after a long time without any replica, server time in milliseconds. */
export const UP_SINCE = 'heddle:up'

/** Hash of the failed attempts of pending entries: `attemptField` → JSON. */
export const attemptsOf = (event: string): string => `heddle:attempts:${event}`
export const attemptField = (group: string, entryId: string): string => `${group} ${entryId}`

/** @param event 1 to 200 of the characters A-Z a-z 0-9 . _ : - */
export const streamOf = (event: string): string => EVENT_PREFIX + event

/** The key of a replica's lock. It exists while the replica lives, and a few seconds longer. */
export const replicaKey = (replicaId: string): string => REPLICA_PREFIX + replicaId

/** Channel of the replies to a replica's requests. */
export const replyChannelOf = (replicaId: string): string => `heddle:reply:${replicaId}`

/**
 * The consumer group of a subscriber. An `@` marks a broadcast group, and a method may be called `'a@b'`: so `@` and `%`
 * are escaped. Almost all names have neither and stay unchanged.
 */
export const groupOf = (subscriber: string): string =>
  subscriber.replace(/[%@]/g, (sign) => (sign === '%' ? '%25' : '%40'))

/** The consumer of a replica in each of its groups. */
export const consumerOf = (replicaId: string): string => `${replicaId}:hub`

/** The consumer of entries that processes have given back. It stands for nobody. */
export const RELEASED = 'released'

/** @returns null for a consumer not named by a replica */
export function replicaOfConsumer(consumer: string): string | null {
  return /^(.+):hub$/s.exec(consumer)?.[1] ?? null
}

/** The group of one replica alone, for a broadcast subscriber. It ends with the replica. */
export const broadcastGroupOf = (subscriber: string, consumer: string): string => `${groupOf(subscriber)}@${consumer}`

/** @returns the consumer of a broadcast group; null for a shared group */
export function consumerOfBroadcast(group: string): string | null {
  const at = group.indexOf('@')
  return at < 0 ? null : group.slice(at + 1)
}
