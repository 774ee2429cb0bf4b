// Settings that are set and not read, or not shared by several processes.
import { basename } from 'node:path'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { logDatabaseOf } from '../../runtime/event-log/tables.ts'
import type { ToolFolder } from '../../runtime/kernel/discover.ts'

/**
 * Warnings of what several processes do not share, although clients meet now one of them and now another.
 * @param folders the implementations in use
 */
export function notShared(
  folders: readonly ToolFolder[],
  { processes, eventBusDriver, systemPort }: Pick<Settings, 'processes' | 'eventBusDriver' | 'systemPort'>,
): string[] {
  const warnings: string[] = []
  const each = `PROCESSES is ${processes}, and each process`
  if (folders.some(({ path }) => basename(path) === 'memory-state'))
    warnings.push(`${each} has a state of its own, with its own counters and sessions: TOOLS=redis-state shares it`)
  if (eventBusDriver !== 'database' && folders.some(({ path }) => basename(path) === 'sqlite'))
    warnings.push(
      `PROCESSES is ${processes}, and SQLite keeps the events that transactions publish for one process: in the others \`tx.publish\` fails with EVENT_BUS_UNAVAILABLE. PostgreSQL (TOOLS=postgres) serves all`,
    )
  if (eventBusDriver === 'in_process')
    warnings.push(
      `${each} delivers its own events alone: EVENT_BUS_DRIVER=database on PostgreSQL, or keyvalue_streams, shares them`,
    )
  if (systemPort === undefined)
    warnings.push(`${each} shows itself alone under /system: with SYSTEM_PORT each has a port of its own`)
  return warnings
}

/** Before anything is served: the second process would be refused. @param db an instance of the tool. @throws DATABASE_TAKEN */
export function refuseOneFile(
  { processes, eventBusDriver }: Pick<Settings, 'processes' | 'eventBusDriver'>,
  db: object | undefined,
): void {
  if (processes === 1 || eventBusDriver !== 'database' || logDatabaseOf(db)?.dialect !== 'sqlite') return
  throw new HeddleError(
    'DATABASE_TAKEN',
    `PROCESSES is ${processes}, and SQLite keeps the events of one process: use PostgreSQL (TOOLS=postgres), or streams of Redis (EVENT_BUS_DRIVER=keyvalue_streams), or events that end with their process (EVENT_BUS_DRIVER=in_process), or PROCESSES=1`,
  )
}

/**
 * Warnings of URLs that are set while nothing reads them: a URL chooses no implementation.
 * @param folders the implementations in use
 */
export function unreadUrls(
  folders: readonly ToolFolder[],
  { databaseUrl, redisUrl, eventBusDriver }: Pick<Settings, 'databaseUrl' | 'redisUrl' | 'eventBusDriver'>,
): string[] {
  const isUsed = (implementation: string): boolean => folders.some(({ path }) => basename(path) === implementation)
  const warnings: string[] = []
  if (databaseUrl !== undefined && isUsed('sqlite')) {
    warnings.push(
      'DATABASE_URL is set, and db is SQLite, which does not read it: choose PostgreSQL with TOOLS=postgres, or with "heddle": { "tools": { "db": "postgres" } } in package.json',
    )
  }
  if (redisUrl !== undefined && isUsed('memory-state') && eventBusDriver !== 'keyvalue_streams') {
    warnings.push(
      'REDIS_URL is set, and nothing reads it: choose TOOLS=redis-state for state, or EVENT_BUS_DRIVER=keyvalue_streams for events',
    )
  }
  return warnings
}
