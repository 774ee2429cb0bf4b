/** Statements that a test sends to the database of a process, behind its back. */
import pg from 'pg'
import { Database } from '../../src/stores/sqlite/driver.ts'
import type { Owner } from './heddle.ts'

/** One SELECT, or whatever else: those may be several statements. */
export type Query = <Row>(sql: string) => Promise<Row[]>

/** How long a statement may wait for the file, milliseconds: SQLite asks again every 100 ms, and a busy process writes in between. */
const BUSY_MS = 60_000

/** Opens the file each time: the process may be gone, or start meanwhile. */
export function rowsOfFile(path: string): Query {
  return async <Row>(sql: string) => {
    const database = new Database(path, { timeout: BUSY_MS })
    try {
      if (sql.trimStart().startsWith('SELECT')) return database.prepare(sql).all() as Row[]
      database.exec(sql)
      return []
    } finally {
      database.close()
    }
  }
}

/** One connection, and another where the server has ended it: to connect costs far more than what a test asks again and again. */
export function rowsOfServer(owner: Owner, access: pg.PoolConfig): Query {
  const { host, port, user, password, database } = access
  const pool = new pg.Pool({ host, port, user, password, database, max: 1, idleTimeoutMillis: 0 })
  pool.on('error', () => {})
  owner.after(() => pool.end())
  return async <Row>(sql: string) => (await pool.query(sql)).rows as Row[]
}
