// Options of the event store.
import type { LogLevel } from '../../contracts/logger.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import type { StoreAnswer, StoreChanges } from '../../transport/store-changes.ts'
import type { Hub } from '../events/hub.ts'
/** Options of the event store of a process. */
import type { EventIndex } from './event-index.ts'
import type { Processes } from './process-identity.ts'
import type { RelayOptions } from './relay.ts'

export interface EventStoreOptions {
  hub: Hub
  log: ThreadStore
  /** EVENT_BUS_MAX_QUEUE. */
  maxQueue: number
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  /** DB_AUTO_MIGRATE. */
  mayMakeTables: boolean
  /** Ends the start if another process has the file: with EVENT_BUS_DRIVER=database, and on a shared port. */
  isRequired: boolean
  /**
   * Counts crashes of the process during which a plugin was handling an event, since a time. Null without a guardian: then every row
   * possibly in hand is a suspect.
   */
  deathsOf: ((id: string, plugin: string, sinceMs: number) => number) | null
  /** REPLICA_ID. */
  replica: string
  /** On PostgreSQL: tells whether a process on this machine is alive. */
  processes: Processes
  /** On PostgreSQL: called when others have removed this process, which must end. */
  onLost: (message: string) => void
  /** Sends an event to the message broker; null: the hub delivers. */
  relay: RelayOptions['send'] | null
  /** Commits outcomes of deliveries. */
  write: (changes: StoreChanges) => Promise<StoreAnswer>
  /** True while a thread of this process runs. */
  isAlive: (threadId: number) => boolean
  report: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
  /** The index by the id of an event. */
  index: EventIndex
  /** Reports of events are stored in another process. @param ids null: of any */
  reported: (ids: readonly string[] | null) => void
}
