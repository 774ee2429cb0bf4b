import { HeddleError } from '../../core/errors/catalogue.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/waiting.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'

/** How long a file may still be another process's, milliseconds: one that ends at this moment has it for a little longer. */
const WAIT_MS = 1000

/**
 * Has the log of a database file for this process alone: two would give the same positions to different events, and deliver each other's.
 * @throws DATABASE_TAKEN while another process has it
 */
export async function claimFile(database: LogDatabase): Promise<void> {
  const isFree = (): boolean => database.claim?.() !== false
  await until(isFree, steadyMs() + WAIT_MS)
  if (isFree()) return
  throw new HeddleError(
    'DATABASE_TAKEN',
    'Another process has the event log of this database file: SQLite serves one process. Stop that one, or use PostgreSQL, which serves any number',
  )
}

export const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'DATABASE_TAKEN'
