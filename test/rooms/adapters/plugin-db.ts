import type { TestContext } from 'node:test'
import type { Db } from '../../../src/contracts/db.ts'
import type { ToolRuntime } from '../../../src/contracts/tool.ts'
import { TransactionEvents } from '../../../src/runtime/event-store/transaction-events.ts'
import { createDb, postgresDb, type ServerAccess } from '../db/fixture.ts'

/** The tool as a plugin has it, and the ids of the events that were delivered. */
export interface PluginDb {
  db: Db
  delivered: string[]
}

export type CreatePluginDb = (t: TestContext) => Promise<PluginDb>

function hostFor(delivered: string[]): ToolRuntime['host'] {
  const beginTransaction = () =>
    new TransactionEvents({
      emitter: 'test.Plugin',
      log: null,
      check: (_, payload) => ({ payload, options: {} }),
      checkCancel: null,
      cancelled: () => {},
      moved: () => {},
      sharesOf: () => '',
      deliver: ({ id }) => void delivered.push(id),
    })
  return { bus: { beginTransaction } } as unknown as ToolRuntime['host']
}

const OWNER = { name: 'test.Plugin', instance: undefined }

export async function onSqlite(t: TestContext): Promise<PluginDb> {
  const delivered: string[] = []
  return { db: (await createDb(t, { host: hostFor(delivered) })).api(OWNER), delivered }
}

export const onPostgres =
  (server: ServerAccess & { createDatabase(): Promise<string> }): CreatePluginDb =>
  async (t) => {
    const delivered: string[] = []
    const tool = postgresDb(t, server, await server.createDatabase(), { host: hostFor(delivered) })
    return { db: tool.api(OWNER), delivered }
  }
