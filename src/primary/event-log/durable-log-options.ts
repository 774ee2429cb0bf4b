import type { LogLevel } from '../../contracts/logger.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import type { LogChanges } from '../../transport/log-changes.ts'
import type { Hub } from '../events/hub.ts'
import type { Processes } from '../streams/process-identity.ts'
import type { RelayOptions } from './relay.ts'

/** What the durable log is given. */
export interface DurableLogOptions {
  hub: Hub
  log: EventLog
  maxQueue: number
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  /** DB_AUTO_MIGRATE. */
  mayMakeTables: boolean
  /** EVENT_BUS_DRIVER=database: all events go through the log, not only those of transactions. */
  isRequired: boolean
  /**
   * At how many deaths of the process a plugin was at work on an event, since a time; null where nobody knows: then all that was there is under
   * suspicion.
   */
  deathsOf: ((id: string, plugin: string, sinceMs: number) => number) | null
  /** REPLICA_ID. */
  replica: string
  /** Of those that share the log. */
  processes: Processes
  /** Another process has taken over: this one must end. */
  onLost: (message: string) => void
  /** Gives events to a broker, which delivers them; null where the hub does. */
  relay: RelayOptions['send'] | null
  /** Reads what the threads of this process have handed on by now. */
  catchUp: () => void
  /** Commits what has become of events. */
  write: (changes: LogChanges) => Promise<void>
  report: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}
