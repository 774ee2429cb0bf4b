// The database of stored events.
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import type { Settings } from '../../core/config/schema.ts'
import { movedMs } from '../../core/schedule/moved-time.ts'
import type { SqlDatabase } from '../../stores/sql/database.ts'

/** The database's own clock as milliseconds since the epoch. */
export const CLOCK_MS = {
  sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  postgres: 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)',
} as const

/** The same for what an application keeps for a time: a test moves it. That of SQLite is moved for all statements. */
export const appClockMs = (dialect: keyof typeof CLOCK_MS): string =>
  movedMs() === 0 || dialect === 'sqlite' ? CLOCK_MS[dialect] : `(${CLOCK_MS[dialect]} + ${movedMs()})`

/** A transaction of the runtime's own. Its statements name the rows they change, so it needs no higher isolation. */
export function ownTransaction<T>(db: StoreDatabase, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(work, undefined, undefined, { isolation: 'read committed' })
}

/** The tool `db` for the runtime: not measured, since no plugin calls it. */
export interface StoreDatabase extends Pick<SqlDatabase, 'dialect' | 'query' | 'queryOne' | 'execute' | 'transaction'> {
  /** On a server: checks that existing tables belong to this user. @throws DATABASE_FOREIGN, DbError */
  requireOwn?(): Promise<void>
  /** On a file: claims it for one process; false if another one has it. */
  claim?(): boolean
  /**
   * On a server: reports each notification of a channel, and each reconnection, since notifications may have been missed.
   * @param told receives the payload; empty after a reconnection
   * @returns a function that ends it
   */
  listen?(channel: string, told: (payload: string) => void): () => void
  /** On a server: sends a short statement ahead of all others of this process, one at a time. */
  urgent?(sql: string, params: readonly SqlValue[]): Promise<{ rowCount: number }>
  /**
   * On a server: sends a statement that may take any time, in no transaction and on a connection of its own. The names in it need their schema.
   * @throws DbError
   */
  apart?(sql: string): Promise<void>
}

/**
 * Returns true if events end with the process although EVENT_BUS_DRIVER is `database`: it is only the default, and no tool `db` can store them.
 * @param settings the driver
 * @param tool an instance of the tool `db`
 */
export function staysInProcess(
  { eventBusDriver }: Pick<Settings, 'eventBusDriver'>,
  tool: object | undefined,
): boolean {
  const isChosen = (readVariable('EVENT_BUS_DRIVER') ?? '') !== ''
  return eventBusDriver === 'database' && !isChosen && storeDatabaseOf(tool) === null
}

/** Returns the database for stored events; null if the tool does not name its dialect. @param tool an instance of the tool `db` */
export function storeDatabaseOf(tool: object | undefined): StoreDatabase | null {
  const dialect = (tool as Partial<StoreDatabase> | undefined)?.dialect
  return dialect === 'sqlite' || dialect === 'postgres' ? (tool as StoreDatabase) : null
}
