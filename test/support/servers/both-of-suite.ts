import { test } from 'node:test'
import { suiteOwner } from '../shared-service.ts'
import type { PostgresServer } from './postgres.ts'
import { describeOnPostgres } from './postgres-of-file.ts'
import { type RedisServer, redisServer } from './redis.ts'

export interface SuiteServers {
  postgres: PostgresServer
  redis: RedisServer
  /** Ends what the suite starts before the servers end. */
  owner: ReturnType<typeof suiteOwner>
}

/** A suite on a PostgreSQL and a Redis. Where one of them is missing, it holds one test that is skipped under its name. */
export function describeOnPostgresAndRedis(name: string, runTests: (servers: SuiteServers) => void): void {
  describeOnPostgres(name, async (postgres) => {
    const owner = suiteOwner()
    const redis = await redisServer({ ...owner, skip: (reason) => void test(name, { skip: reason }) })
    if (redis !== null) runTests({ postgres, redis, owner })
  })
}
