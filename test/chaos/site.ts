import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { folderOf } from '../support/folder.ts'
import type { Owner } from '../support/heddle.ts'
import { rowsOfFile, rowsOfServer } from '../support/rows.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { redisServer } from '../support/servers/redis.ts'
import { toolsDirWith } from '../support/tools-dir.ts'
import type { ChaosArguments } from './arguments.ts'
import { type EvidenceSource, evidenceIn, withStreams } from './evidence.ts'
import { GuardedService } from './guarded-service.ts'

/** Processes that share a server. */
const SHARING = 2
/** How long the server of the events is away, milliseconds: longer than all attempts of a subscriber take. */
const AWAY_MS = 4000

/** Where it happens: the services, and the database that they write to. */
export interface Site {
  readonly services: readonly GuardedService[]
  readonly evidence: EvidenceSource
  /** The server of the events loses its power and comes back. */
  restartServer(): Promise<void>
}

/** Bounds that lanes meet often in a short time. */
const LIMITS = { LANE_STALL_MS: '1000', LANE_MEMORY_MB: '96', HTTP_HANDLER_TIMEOUT_MS: '5000' }

export async function makeSite(guard: Owner, { log, lanes, killProcess }: ChaosArguments): Promise<Site> {
  return log === 'sqlite' ? onFile(guard, lanes, killProcess ? {} : LIMITS) : onServer(guard, lanes, log === 'redis')
}

async function onFile(guard: Owner, lanes: number, limits: Record<string, string>): Promise<Site> {
  const path = join(await folderOf(guard, {}), 'service.db')
  const env = { SQLITE_PATH: path, ...limits }
  const service = await GuardedService.start(guard, { lanes, database: 'sqlite', env })
  return { services: [service], evidence: evidenceIn(rowsOfFile(path)), restartServer: async () => {} }
}

async function onServer(guard: Owner, lanes: number, isRedis: boolean): Promise<Site> {
  const skip = (reason?: string): void => {
    throw new Error(reason ?? 'there is no such server')
  }
  const owner = { after: (end: () => Promise<void>) => guard.after(end), skip }
  const server = await postgresServer(owner, { own: true, durable: true })
  if (server === null) throw new Error('there is no PostgreSQL')
  const streams = isRedis
    ? await redisServer(owner, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    : null
  const env = {
    ...server.env,
    TOOLS_DIR: await toolsDirWith(owner, 'postgres'),
    ...(streams === null ? {} : { ...streams.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }),
  }
  const services: GuardedService[] = []
  for (let n = 1; n <= SHARING; n++)
    services.push(
      await GuardedService.start(guard, { lanes, database: 'postgres', env: { ...env, REPLICA_ID: `replica-${n}` } }),
    )
  const onDatabase = evidenceIn(rowsOfServer(guard, server))
  return {
    services,
    evidence: streams === null ? onDatabase : withStreams(onDatabase, streams),
    async restartServer() {
      if (streams === null) await server.stop('immediate')
      else await streams.stop('SIGKILL')
      await sleep(AWAY_MS)
      await (streams ?? server).start()
    },
  }
}
