import type { TestContext } from 'node:test'
import { STREAM_SCRIPTS } from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { connect, settingsOf, sharedServer } from '../../support/redis-under-test.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { testWith } from '../../support/test-with.ts'

export interface Store {
  server: RedisServer
  redis: RedisClient
  /** One more connection, which ends with the test. */
  connect(): RedisClient
}

/** An empty server, and connections to it. */
async function storeOn(t: TestContext, server: RedisServer | null): Promise<Store | null> {
  if (server === null) return null
  const open = () => connect(t, settingsOf(server), { scripts: STREAM_SCRIPTS, commandTimeoutMs: 20_000 })
  const redis = open()
  await redis.command('flushdb', [])
  return { server, redis, connect: open }
}

/** A server of the test's own. @returns null where none can be had: the test has been skipped then */
export const streamStore = async (t: TestContext, args?: readonly string[]): Promise<Store | null> =>
  storeOn(t, await redisServer(t, { own: true, args }))

/** Makes tests on one server of their file, which is empty for each. */
export function streamTests() {
  const server = sharedServer()
  return testWith(async (t) => storeOn(t, await server(t)))
}

export interface Entry {
  id: string
  fields: Record<string, string>
}

export function entriesOf(reply: [id: string, fields: string[]][]): Entry[] {
  return reply.map(([id, list]) => {
    const fields: Record<string, string> = {}
    for (let at = 0; at < list.length; at += 2) fields[list[at]!] = list[at + 1]!
    return { id, fields }
  })
}

/** Everything that a stream holds. */
export async function entriesIn(redis: RedisClient, stream: string): Promise<Entry[]> {
  return entriesOf(await redis.command('xrange', [stream, '-', '+']))
}

/** Adds entries of one field `n` with the numbers from `from` on. @returns their ids */
export async function addNumbers(redis: RedisClient, stream: string, count: number, from = 0): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => redis.command<string>('xadd', [stream, '*', 'n', from + index])),
  )
}

/** Gives a consumer new entries. @returns their ids */
export async function deliver(
  redis: RedisClient,
  stream: string,
  group: string,
  consumer: string,
  count: number,
): Promise<string[]> {
  const reply = await redis.command<[string, [string, string[]][]][] | null>('xreadgroup', [
    'GROUP',
    group,
    consumer,
    'COUNT',
    count,
    'STREAMS',
    stream,
    '>',
  ])
  return reply === null ? [] : reply[0]![1].map(([id]) => id)
}

export interface Pending {
  id: string
  consumer: string
  idleMs: number
  deliveries: number
}

export async function pendingOf(redis: RedisClient, stream: string, group: string): Promise<Pending[]> {
  const reply = await redis.command<[string, string, number, number][]>('xpending', [stream, group, '-', '+', 20_000])
  return reply.map(([id, consumer, idleMs, deliveries]) => ({ id, consumer, idleMs, deliveries }))
}
