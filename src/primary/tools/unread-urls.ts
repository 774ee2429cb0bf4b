import { basename } from 'node:path'
import type { Settings } from '../../core/config/schema.ts'
import type { ToolFolder } from '../../runtime/kernel/discover.ts'

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
