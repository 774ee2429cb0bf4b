import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from '../../support/databases.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, type Owner, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/effects', import.meta.url))]

/** Starts processes one after another on one database, which outlives them. @param lanes how many each has */
export async function starterOn(t: Owner, database: Database, lanes = 1) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'service.db')
  const env = { ...(await database.env(t)), SQLITE_PATH: path, LANE_ENV: 'DIE_AT' }
  const start = (own: Record<string, string> = {}): Promise<Heddle> =>
    startHeddle(t, { domains: DOMAINS, lanes, env: { ...env, ...own } })
  return { start, path }
}

/** Resolves when the process has been killed; a code, when it has ended by itself. */
export async function deathOf({ process }: Heddle): Promise<NodeJS.Signals | number | null> {
  await until(() => process.exitCode !== null || process.signalCode !== null, 'the end of the process')
  return process.signalCode ?? process.exitCode
}
