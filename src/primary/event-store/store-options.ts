import type { LogLevel } from '../../contracts/logger.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import type { LogChanges } from '../../transport/log-changes.ts'
import type { Hub } from '../events/hub.ts'
import type { Processes } from '../streams/process-identity.ts'
import type { RelayOptions } from './relay.ts'

/** Options of stored events: for the event store on SQLite and the event log on PostgreSQL. */
export interface DurableLogOptions {
  hub: Hub
  log: EventLog
  /** EVENT_BUS_MAX_QUEUE. */
  maxQueue: number
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  /** DB_AUTO_MIGRATE. */
  mayMakeTables: boolean
  /** Ends the start if another process has the file: with EVENT_BUS_DRIVER=database, and on a shared port. */
  isRequired: boolean
  /**
   * Counts crashes of the process during which a plugin was handling an event, since a time. Null without a guardian: then every row that may
   * have been in hand is a suspect.
   */
  deathsOf: ((id: string, plugin: string, sinceMs: number) => number) | null
  /** REPLICA_ID. */
  replica: string
  /** On PostgreSQL: tells whether a process on this machine is alive. */
  processes: Processes
  /** On PostgreSQL: another process has taken over, and this one must end. */
  onLost: (message: string) => void
  /** Sends an event to the message broker; null: the hub delivers. */
  relay: RelayOptions['send'] | null
  /** On PostgreSQL: reads all frames the lanes have written so far. */
  catchUp: () => void
  /** Commits outcomes. */
  write: (changes: LogChanges) => Promise<void>
  report: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}
