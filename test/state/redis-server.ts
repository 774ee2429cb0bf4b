import { after, type TestContext } from 'node:test'
import { loadSettings } from '../../src/config/load.ts'
import type { Settings } from '../../src/config/schema.ts'
import { openRedis, type RedisClient } from '../../src/redis/client.ts'
import { type RedisServer, redisServer } from '../support/servers/redis.ts'
import { SECRET } from '../tools/runtime-fixture.ts'

/** The settings of a process that uses the server. */
export function settingsOf(server: RedisServer, more: Record<string, string> = {}): Settings {
  return loadSettings({ AUTH_SECRET_KEY: SECRET, REPLICA_ID: 'test', ...server.env, ...more }).settings
}

/** One server for all tests of a file, started for the first. */
export function sharedServer(): (t: TestContext) => Promise<RedisServer | null> {
  let reason = ''
  let starting: Promise<RedisServer | null> | undefined
  const ends: (() => unknown)[] = []
  after(async () => {
    for (const end of ends.reverse()) await end()
  })
  return async (t) => {
    const owner = {
      after: (end: () => Promise<void>) => void ends.push(end),
      skip: (why: string) => {
        reason = why
      },
    }
    starting ??= redisServer(owner)
    const server = await starting
    if (server === null) t.skip(reason)
    return server
  }
}

/** A connection of the test's own, to look at what is stored. */
export function connect(t: TestContext, settings: Settings): RedisClient {
  const client = openRedis(settings, { name: 'test', log: () => {} })
  t.after(() => client.close())
  return client
}
