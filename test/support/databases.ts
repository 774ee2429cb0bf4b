import { describe } from 'node:test'
import { describeOnPostgres } from './servers/postgres-of-file.ts'
import { toolsDirWith } from './tools-dir.ts'

type Owner = Parameters<typeof toolsDirWith>[0]

/** A database that a process of the runtime can be started on. */
export interface Database {
  name: 'SQLite' | 'PostgreSQL'
  /** Environment of a process with an empty database of its own, and with other implementations of tools. */
  env(t: Owner, ...implementations: string[]): Promise<Record<string, string>>
}

export const ON_SQLITE: Database = {
  name: 'SQLite',
  env: async (t, ...implementations): Promise<Record<string, string>> =>
    implementations.length === 0 ? {} : { TOOLS_DIR: await toolsDirWith(t, ...implementations) },
}

/** The same suite on each database: `users on SQLite`, `users on PostgreSQL`. */
export function describeOnDatabases(subject: string, runTests: (database: Database) => void): void {
  describe(`${subject} on SQLite`, () => runTests(ON_SQLITE))
  describeOnPostgres(`${subject} on PostgreSQL`, (server) =>
    runTests({
      name: 'PostgreSQL',
      env: async (t, ...implementations) => ({
        ...server.env,
        RDB_DATABASE: await server.createDatabase(),
        TOOLS_DIR: await toolsDirWith(t, 'postgres', ...implementations),
      }),
    }),
  )
}
