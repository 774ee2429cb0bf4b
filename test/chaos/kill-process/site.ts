import { join } from 'node:path'
import { folderOf } from '../../support/folder.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import type { ChaosArguments } from '../arguments.ts'
import type { Owner } from '../process-guard.ts'
import { type EvidenceSource, evidenceInFile, evidenceOnServer } from './evidence.ts'
import { GuardedService } from './guarded-service.ts'

/** Processes that share a server. */
const SHARING = 2

/** Where it happens: the services, and the database that they write to. */
export interface Site {
  readonly services: readonly GuardedService[]
  readonly evidence: EvidenceSource
  /** The server of the database loses its power and comes back. */
  restartDatabase(): Promise<void>
}

export async function makeSite(guard: Owner, { database, lanes }: ChaosArguments): Promise<Site> {
  return database === 'sqlite' ? onFile(guard, lanes) : onServer(guard, lanes)
}

async function onFile(guard: Owner, lanes: number): Promise<Site> {
  const path = join(await folderOf(guard, {}), 'service.db')
  const service = await GuardedService.start(guard, { lanes, database: 'sqlite', env: { SQLITE_PATH: path } })
  return { services: [service], evidence: evidenceInFile(path), restartDatabase: async () => {} }
}

async function onServer(guard: Owner, lanes: number): Promise<Site> {
  const skip = (reason?: string): void => {
    throw new Error(reason ?? 'there is no PostgreSQL')
  }
  const owner = { after: (end: () => Promise<void>) => guard.after(end), skip }
  const server = await postgresServer(owner, { own: true, durable: true })
  if (server === null) throw new Error('there is no PostgreSQL')
  const { host, port, user, password, database } = server
  const env = { ...server.env, TOOLS_DIR: await toolsDirWith(owner, 'postgres') }
  const services: GuardedService[] = []
  for (let n = 1; n <= SHARING; n++)
    services.push(
      await GuardedService.start(guard, { lanes, database: 'postgres', env: { ...env, REPLICA_ID: `replica-${n}` } }),
    )
  return {
    services,
    evidence: evidenceOnServer({ host, port, user, password, database }),
    async restartDatabase() {
      await server.stop('immediate')
      await server.start()
    },
  }
}
