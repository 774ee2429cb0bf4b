// Commands and scripts for streams.
import { type RedisClient, type RedisScript, readScript } from '../../stores/redis/client.ts'

// Saved before plugins can replace it.
const { stringify: toJson } = JSON

/** An entry as XREADGROUP returns it: names and values of its fields alternating, null when it was cut from the stream. */
export type Entry = [id: string, fields: string[] | null]
type Streams = [stream: string, entries: Entry[]][] | null

/** No entry comes after it. The highest id of all would mean `>`. */
const LAST_ID = '18446744073709551615-0'

/** Outcome of a request at one subscriber. */
export type ReplyOutcome = 'reply' | 'failed'

/** Entries no consumer of the group has had. */
export async function readGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  consumer: string,
  count: number,
): Promise<Entry[]> {
  const args = ['GROUP', group, consumer, 'COUNT', count, 'STREAMS', stream, '>']
  const streams = await redis.command<Streams>('xreadgroup', args)
  return streams?.[0]?.[1] ?? []
}

/** Shows that a consumer lives, by a read of its pending entries that finds none. Rejects if the group is missing. */
export const touch = (redis: RedisClient, stream: string, group: string, consumer: string): Promise<unknown> =>
  redis.command('xreadgroup', ['GROUP', group, consumer, 'COUNT', 1, 'STREAMS', stream, LAST_ID])

/** The time of the server, milliseconds since the epoch. */
export async function serverMs(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.command<[seconds: string, micros: string]>('time', [])
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/** Tells the processes that read a stream of its new entry. If the message is lost, they read it a second later. */
export function ring(redis: RedisClient, stream: string): void {
  redis.command('publish', [stream, '']).catch(() => {})
}

/** @param replyTo `<channel> <number>` */
export async function reply(redis: RedisClient, replyTo: string, outcome: ReplyOutcome, text: string): Promise<void> {
  const at = replyTo.lastIndexOf(' ')
  const number = Number(replyTo.slice(at + 1))
  await redis.command('publish', [replyTo.slice(0, at), toJson([number, outcome, text])])
}

const script = (name: string): RedisScript => readScript(new URL(`./commands/${name}.lua`, import.meta.url))

/** The scripts of the stream transport. The server runs each in one step. */
export const SCRIPTS = {
  publishBatch: script('publish-batch-1'),
  dropUnseen: script('drop-unseen-1'),
  releaseEntries: script('release-entries-1'),
  freeReplica: script('free-replica-1'),
  addDeadLetter: script('add-dead-letter-2'),
  listDeadLetters: script('list-dead-letters-1'),
  replayDeadLetter: script('replay-dead-letter-2'),
  releaseDelayed: script('release-delayed-1'),
} as const

/** For a `RedisClient`: a connection that has loaded them sends only their hashes. */
export const STREAM_SCRIPTS: readonly RedisScript[] = Object.values(SCRIPTS)

export interface ConsumerInfo {
  readonly name: string
  /** Pending entries: delivered to it and not acknowledged. */
  readonly pending: number
  /** Milliseconds since the server last saw it. */
  readonly idleMs: number
}

/** True for the server's error about a missing stream or group: the server was wiped, or the group was destroyed. */
export function isNoGroup(fault: unknown): boolean {
  return /\bNOGROUP\b|ERR no such key/i.test(answerOf(fault))
}

/** For `catch`: what is gone has nothing pending. */
export function ignoreNoGroup(fault: unknown): void {
  if (!isNoGroup(fault)) throw fault
}

/** The server's own words; empty if the fault is not an answer of it. */
function answerOf(fault: unknown): string {
  const { cause } = fault as { cause?: unknown }
  return cause instanceof Error ? cause.message : ''
}

/**
 * Creates the group, and the stream if missing. An existing group keeps its position.
 * @param from `$`: it gets later entries only; `0`: all entries of the stream as well
 * @returns true if it is new
 */
export async function ensureGroup(
  redis: RedisClient,
  stream: string,
  group: string,
  from: '$' | '0',
): Promise<boolean> {
  try {
    await redis.command('xgroup', ['CREATE', stream, group, from, 'MKSTREAM'])
    return true
  } catch (fault) {
    if (/^BUSYGROUP/.test(answerOf(fault))) return false
    throw fault
  }
}

/** A consumer group as the server knows it. */
export interface GroupInfo {
  readonly name: string
  readonly pending: number
  readonly lastDeliveredId: string
  /** Entries it has not had; null if the server cannot tell. */
  readonly lag: number | null
}

/** The groups of a stream; empty if there is no such stream. */
export async function listGroups(redis: RedisClient, stream: string): Promise<GroupInfo[]> {
  const groups = await rowsOf(redis, ['GROUPS', stream])
  return groups.map((field) => ({
    name: String(field('name')),
    pending: Number(field('pending')),
    lastDeliveredId: String(field('last-delivered-id')),
    lag: field('lag') as number | null,
  }))
}

/** Empty if there is no such stream or group. */
export async function listConsumers(redis: RedisClient, stream: string, group: string): Promise<ConsumerInfo[]> {
  const consumers = await rowsOf(redis, ['CONSUMERS', stream, group])
  return consumers.map((field) => ({
    name: String(field('name')),
    pending: Number(field('pending')),
    idleMs: Number(field('idle')),
  }))
}

/** The rows of XINFO, each as a function of the field's name; empty if there is no such stream or group. */
async function rowsOf(redis: RedisClient, args: string[]): Promise<((field: string) => unknown)[]> {
  try {
    const rows = await redis.command<unknown[][]>('xinfo', args)
    return rows.map((row) => (field) => row[row.indexOf(field) + 1])
  } catch (fault) {
    if (isNoGroup(fault)) return []
    throw fault
  }
}
