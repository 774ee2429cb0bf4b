import { serversNeededBy } from '../servers/needed.ts'
import { postgresServer } from '../servers/postgres.ts'

/** Replicas of several files at a time, each with a pool. */
const MAX_CONNECTIONS = '600'

/**
 * One PostgreSQL for all files that do not stop or configure theirs: it is given to them as one by RDB_* in the environment is, and each makes databases of its own.
 * @returns ends it
 */
export async function sharePostgres(files: readonly string[]): Promise<() => Promise<void>> {
  const users = files.filter((file) => serversNeededBy([file]).includes('postgres'))
  if (users.length < 2 || process.env.RDB_HOST !== undefined) return async () => {}
  const ends: (() => Promise<void>)[] = []
  const owner = { after: (end: () => Promise<void>) => void ends.push(end), skip: () => {} }
  const endAll = async (): Promise<void> => {
    for (const end of ends) await end()
  }
  try {
    const server = await postgresServer(owner, { settings: { max_connections: MAX_CONNECTIONS } })
    const { RDB_DATABASE: _, ...environment } = server?.env ?? {}
    Object.assign(process.env, environment)
  } catch (error) {
    // The tests that need one say so themselves.
    console.error(`postgres: ${(error as Error).message}`)
  }
  return endAll
}
