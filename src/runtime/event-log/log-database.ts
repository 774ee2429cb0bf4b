import { readVariable } from '../../core/config/plugin-variables.ts'
import type { Settings } from '../../core/config/schema.ts'
import type { SqlDatabase } from '../../stores/sql/database.ts'

/** The tool `db` as the log uses it: without the meter, since no plugin calls it. */
export interface LogDatabase extends Pick<SqlDatabase, 'dialect' | 'query' | 'queryOne' | 'execute' | 'transaction'> {
  /** On a server: that the tables which are there are this user's. @throws DATABASE_FOREIGN, DbError */
  requireOwn?(): Promise<void>
  /** On a file, which one process has at a time: false when another one has it. */
  claim?(): boolean
  /**
   * On a server: tells of each notification of a channel, and of each time that the connection is there again, when some may have been missed.
   * @param told gets the payload; empty after a reconnection
   * @returns ends it
   */
  listen?(channel: string, told: (payload: string) => void): () => void
}

/**
 * True where events end with the process although EVENT_BUS_DRIVER is `database`: nobody has chosen it, and there is no tool `db` that could
 * hold them.
 * @param settings the driver
 * @param tool an instance of the tool `db`
 */
export function staysInProcess(
  { eventBusDriver }: Pick<Settings, 'eventBusDriver'>,
  tool: object | undefined,
): boolean {
  const isChosen = (readVariable('EVENT_BUS_DRIVER') ?? '') !== ''
  return eventBusDriver === 'database' && !isChosen && logDatabaseOf(tool) === null
}

/** The database of the log; null when the tool does not say which SQL it speaks. @param tool an instance of the tool `db` */
export function logDatabaseOf(tool: object | undefined): LogDatabase | null {
  const dialect = (tool as Partial<LogDatabase> | undefined)?.dialect
  return dialect === 'sqlite' || dialect === 'postgres' ? (tool as LogDatabase) : null
}
