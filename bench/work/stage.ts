// Servers of the case `work`: heddle on SQLite and PostgreSQL, and what its peers need.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { postgresServer } from '../../test/support/servers/postgres.ts'
import { redisServer } from '../../test/support/servers/redis.ts'
import { toolsDirWith } from '../../test/support/tools-dir.ts'
import type { CaseContext } from '../bench-case.ts'
import type { Owner } from '../child.ts'
import type { DbAccess } from '../elastic/db.ts'
import type { RedisAccess } from '../peers/bullmq/plan.ts'
import { installPeer } from '../peers/install.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'

export const STORES = ['SQLite', 'PostgreSQL'] as const
export type Store = (typeof STORES)[number]

const STREAMS = 4000
const LOOK_MS = 10

export interface Stage {
  /** Of the server processes of PostgreSQL. */
  readonly postmaster: number
  readonly redis: RedisAccess
  /** A new, empty database. */
  database(): Promise<DbAccess>
  /** Settings of heddle for a store of its own. */
  settings(store: Store): Promise<Record<string, string>>
}

export async function openStage(context: CaseContext, owner: Owner): Promise<Stage> {
  installPeer('bullmq', context.say)
  const redis = await redisServer(owner, { own: true })
  const postgres = await postgresServer(owner, { own: true, durable: true })
  if (redis === null || postgres === null) throw new Error(owner.reason)
  const { host, port, user, password } = postgres
  const database = async () => ({ host, port, user, password, database: await postgres.createDatabase() })
  const toolsDir = await toolsDirWith(owner, 'postgres')
  return {
    postmaster: await postmasterPid(await database()),
    redis: { host: redis.host, port: redis.port, password: redis.password },
    database,
    settings: async (store) => ({
      EVENT_BUS_DRIVER: 'database',
      HTTP_MAX_STREAMS_PER_ADDRESS: String(STREAMS),
      ...(store === 'SQLite'
        ? {}
        : { ...postgres.env, TOOLS_DIR: toolsDir, RDB_DATABASE: (await database()).database }),
    }),
  }
}

async function postmasterPid(access: DbAccess): Promise<number> {
  const client = new pg.Client(access)
  await client.connect()
  try {
    const { rows } = await client.query("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid")
    return Number(rows[0].pid)
  } finally {
    await client.end()
  }
}

/** A process with one lane. @param profile name of its CPU profile */
export async function startOn(
  context: CaseContext,
  owner: Owner,
  env: Record<string, string>,
  profile: string,
): Promise<BenchServer> {
  const profileDir = context.profileDir(profile)
  const server = await startHeddle({ lanes: 1, domains: ['domains', 'bench/work/domains'], env, profileDir })
  owner.after(server.stop)
  return server
}

export const ask = async <T>(server: BenchServer, path: string, post?: object): Promise<T> =>
  (await askJson<{ data: T }>(server, `/work/${path}`, post === undefined ? {} : { post })).data

/** @throws when it does not hold in time */
export async function until(holds: () => boolean | Promise<boolean>, what: string, deadlineMs = 30_000): Promise<void> {
  const startMs = performance.now()
  while (!(await holds())) {
    if (performance.now() - startMs > deadlineMs) throw new Error(`not after ${deadlineMs} ms: ${what}`)
    await sleep(LOOK_MS)
  }
}
