import type { TestContext } from 'node:test'
import { serverOfFile } from './servers/postgres-of-file.ts'
import { toolsDirWith } from './tools-dir.ts'

/** A database that a process of the runtime can be started on. */
export interface Database {
  name: 'SQLite' | 'PostgreSQL'
  /** Environment of a process with an empty database of its own. */
  env(t: TestContext): Promise<Record<string, string>>
}

/** Those that the tests of a file run on. Without a PostgreSQL they stand as skipped under the name of the file's subject. */
export async function databases(subject: string): Promise<Database[]> {
  const found: Database[] = [{ name: 'SQLite', env: async () => ({}) }]
  const server = await serverOfFile(`${subject} on PostgreSQL`)
  if (server !== null) {
    found.push({
      name: 'PostgreSQL',
      env: async (t) => ({
        ...server.env,
        RDB_DATABASE: await server.createDatabase(),
        TOOLS_DIR: await toolsDirWith(t, 'postgres'),
      }),
    })
  }
  return found
}
