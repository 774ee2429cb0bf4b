import type { TestContext } from 'node:test'
import { loadSettings } from '../../src/core/config/load.ts'
import type { Settings } from '../../src/core/config/schema.ts'
import { RedisClient, type RedisOptions } from '../../src/stores/redis/client.ts'
import { type RedisServer, redisServer } from './servers/redis.ts'
import { suiteOwner } from './shared-service.ts'
import { SECRET } from './tool-runtime.ts'

/** The settings of a process that uses the server. */
export function settingsOf(server: Pick<RedisServer, 'env'>, more: Record<string, string> = {}): Settings {
  return loadSettings({ AUTH_SECRET_KEY: SECRET, REPLICA_ID: 'test', ...server.env, ...more }).settings
}

/** One server for all tests of a file, started for the first. */
export function sharedServer(): (t: TestContext) => Promise<RedisServer | null> {
  let reason = ''
  let starting: Promise<RedisServer | null> | undefined
  const owner = suiteOwner()
  const skip = (why: string): void => {
    reason = why
  }
  return async (t) => {
    starting ??= redisServer({ ...owner, skip })
    const server = await starting
    if (server === null) t.skip(reason)
    return server
  }
}

export interface LogLine {
  level: string
  message: string
}

/** A connection that ends with the test, and what it has logged. */
export function connect(
  t: TestContext,
  settings: Settings,
  options: Partial<RedisOptions> = {},
): RedisClient & { logs: LogLine[] } {
  const logs: LogLine[] = []
  const log = (level: string, message: string) => void logs.push({ level, message })
  const client = new RedisClient(settings, { name: 'test', log, ...options })
  t.after(() => client.close())
  return Object.assign(client, { logs })
}
