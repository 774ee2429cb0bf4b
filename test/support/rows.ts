/** Statements that a test sends to the database of a process, behind its back. */
import pg from 'pg'
import { Database } from '../../src/stores/sqlite/driver.ts'

export type Query = <Row>(sql: string) => Promise<Row[]>

/** Opens the file for each statement: the process may be gone, or start meanwhile. */
export function rowsOfFile(path: string): Query {
  return async <Row>(sql: string) => {
    const database = new Database(path, { timeout: 10_000 })
    try {
      const statement = database.prepare(sql)
      if (statement.reader) return statement.all() as Row[]
      statement.run()
      return []
    } finally {
      database.close()
    }
  }
}

/** One connection, and another where the server has ended it: to connect costs far more than what a test asks again and again. */
export function rowsOfServer(owner: { after(end: () => Promise<void>): void }, access: pg.PoolConfig): Query {
  const { host, port, user, password, database } = access
  const pool = new pg.Pool({ host, port, user, password, database, max: 1, idleTimeoutMillis: 0 })
  pool.on('error', () => {})
  owner.after(() => pool.end())
  return async <Row>(sql: string) => (await pool.query(sql)).rows as Row[]
}
