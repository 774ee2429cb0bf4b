// Groups of a stream and their consumers.
import type { RedisClient } from '../../stores/redis/client.ts'
import { replicaKey, replicaOfConsumer } from './keys.ts'
import { SCRIPTS } from './scripts.ts'

interface ConsumerInfo {
  readonly name: string
  /** Entries that it was given and that are not acknowledged. */
  readonly pending: number
  /** Milliseconds since it last asked for entries or claimed some. */
  readonly idleMs: number
}

/** True for the server's error about a missing stream or group: the server was wiped, or the group was destroyed. */
export function isNoGroup(fault: unknown): boolean {
  const { cause } = fault as { cause?: unknown }
  return cause instanceof Error && /\bNOGROUP\b|ERR no such key/i.test(cause.message)
}

/**
 * Creates the group, and the stream when there is none. An existing group keeps its position.
 * @param from `$`: it gets what is added from now on; `0`: also all that the stream holds
 * @returns whether it is new
 */
export async function ensureGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  from: '$' | '0',
): Promise<boolean> {
  return (await redis.run<number>(SCRIPTS.ensureGroup, [stream], [group, from])) === 1
}

/** The names of a stream's groups; empty when there is no such stream. */
export async function listGroups(redis: RedisClient, stream: string): Promise<string[]> {
  try {
    const reply = await redis.command<(string | number)[][]>('xinfo', ['GROUPS', stream])
    return reply.map((fields) => String(fields[fields.indexOf('name') + 1]))
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}

/** Empty when there is no such stream or group. */
export async function listConsumers(redis: RedisClient, stream: string, group: string): Promise<ConsumerInfo[]> {
  try {
    const reply = await redis.command<(string | number)[][]>('xinfo', ['CONSUMERS', stream, group])
    return reply.map((fields) => {
      const field = (name: string) => fields[fields.indexOf(name) + 1]
      return { name: String(field('name')), pending: Number(field('pending')), idleMs: Number(field('idle')) }
    })
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}

/**
 * Removes a consumer whose replica is gone, unless it has pending entries: others claim those first.
 * @returns false when it stays for one of these reasons, or when it is no consumer of a replica
 */
export async function removeConsumer(
  redis: RedisClient,
  stream: string,
  group: string,
  consumer: string,
): Promise<boolean> {
  const replica = replicaOfConsumer(consumer)
  if (replica === null) return false
  return (await redis.run<number>(SCRIPTS.removeConsumer, [stream, replicaKey(replica)], [group, consumer])) === 1
}
