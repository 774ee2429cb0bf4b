import type { TestContext } from 'node:test'
import type { SqlValue } from '../../src/contracts/db.ts'
import type { StoreDatabase } from '../../src/runtime/event-store/database.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'

/** An empty database in memory, without the tool. */
export function memoryDatabase(t: TestContext): StoreDatabase {
  const file = new Database(':memory:')
  t.after(() => file.close())
  const run = (sql: string, params: readonly SqlValue[] = []) => {
    const statement = file.prepare(sql)
    const named = Object.fromEntries(params.map((value, n) => [n + 1, value]))
    if (!statement.reader) return { rowCount: statement.run(named).changes, rows: [] }
    const rows = statement.all(named)
    return { rowCount: rows.length, rows }
  }
  const db = {
    dialect: 'sqlite',
    query: async (sql: string, params?: readonly SqlValue[]) => run(sql, params).rows,
    queryOne: async (sql: string, params?: readonly SqlValue[]) => run(sql, params).rows[0] ?? null,
    execute: async (sql: string, params?: readonly SqlValue[]) => run(sql, params),
    transaction: async (work: (tx: unknown) => Promise<unknown>) => work(db),
  } as unknown as StoreDatabase
  return db
}
