/**
 * Every name that the stream transport uses in the key-value store, and the way back from a name to what it stands for.
 * One server, no cluster: scripts reach keys that they compute themselves.
 */

/** What the keys of all events' streams begin with. */
export const EVENT_PREFIX = 'heddle:event:'
const REPLICA_PREFIX = 'heddle:replica:'

/** The stream of what could not be delivered. */
export const DEAD_STREAM = 'heddle:dead'
/** Sorted set of the events that wait for their time; the score is when they are due, server time in milliseconds. */
export const DELAYED = 'heddle:delayed'
/** Hash: `seenField` → when a replica last said that it subscribes, server time in milliseconds. */
export const GROUPS_SEEN = 'heddle:groups'
/** Hash: stream → how many of its entries had been removed when the trimmer last looked. */
export const REMOVED = 'heddle:removed'

/** Of a replica, the one that reads: a lane by its number, the primary, or the hub of the primary. */
export type ConsumerThread = number | 'primary' | 'hub'

/** @param event 1 to 200 of the characters A-Z a-z 0-9 . _ : - */
export const streamOf = (event: string): string => EVENT_PREFIX + event

/** @returns null for a key that is no event's stream */
export function eventOf(stream: string): string | null {
  return stream.startsWith(EVENT_PREFIX) ? stream.slice(EVENT_PREFIX.length) : null
}

/** Exists while the replica lives, and a few seconds longer. */
export const replicaKey = (replicaId: string): string => REPLICA_PREFIX + replicaId

/** The channel on which a replica hears the replies to its requests. */
export const replyChannelOf = (replicaId: string): string => `heddle:reply:${replicaId}`

/** Holds the entry id of the last event with an ordering key. An event's name has no slash, so the first one ends it. */
export const lastOfKey = (event: string, key: string): string => `heddle:last:${event}/${key}`

/**
 * The consumer group of a subscriber. A name holds what it likes (a method may be called `'a@b'`), a broadcast group is told by
 * its `@`: so `@` and `%` are escaped. Names without them, almost all, are the group's name as they are.
 */
export const groupOf = (subscriber: string): string =>
  subscriber.replace(/[%@]/g, (sign) => (sign === '%' ? '%25' : '%40'))

/** The way back from `groupOf` and `broadcastGroupOf`. */
export function subscriberOf(group: string): string {
  return group.split('@', 1)[0]!.replace(/%(25|40)/g, (_, code) => (code === '25' ? '%' : '@'))
}

/** A thread is called by a number or a word, so the last colon ends the replica's id, which may hold others. */
export const consumerOf = (replicaId: string, thread: ConsumerThread): string => `${replicaId}:${thread}`

/** @returns null for a consumer that is none of ours */
export function replicaOfConsumer(consumer: string): string | null {
  return /^(.+):(?:\d+|primary|hub)$/s.exec(consumer)?.[1] ?? null
}

/** The group of one thread alone, for a subscriber that every thread is to have. It ends with the thread. */
export const broadcastGroupOf = (subscriber: string, consumer: string): string => `${groupOf(subscriber)}@${consumer}`

/** @returns the thread that a broadcast group belongs to, null for a group that threads share */
export function consumerOfBroadcast(group: string): string | null {
  const at = group.indexOf('@')
  return at < 0 ? null : group.slice(at + 1)
}

/** The field of GROUPS_SEEN. An event's name has no blank, so the first one ends the stream's. */
export const seenField = (stream: string, group: string): string => `${stream} ${group}`

export function groupOfSeenField(field: string): { stream: string; group: string } | null {
  const at = field.indexOf(' ')
  return at < 0 ? null : { stream: field.slice(0, at), group: field.slice(at + 1) }
}
