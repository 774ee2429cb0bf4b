import { importsOf, loads } from '../runner/imports.ts'
import type { ServerName } from './programs.ts'

const STARTERS: Readonly<Record<string, ServerName>> = {
  'support/servers/postgres.ts': 'postgres',
  'support/servers/pgbouncer.ts': 'pgbouncer',
  'support/servers/redis.ts': 'redis',
  'support/servers/nginx.ts': 'nginx',
  'support/servers/prometheus.ts': 'prometheus',
  'support/browser.ts': 'chromium',
  'support/servers/set-clock.ts': 'faketime',
}

/** The servers that test files start, by what they and their helpers import. */
export function serversNeededBy(files: readonly string[]): ServerName[] {
  const needed = new Set<ServerName>()
  for (const imports of files.map(importsOf)) {
    for (const [starter, name] of Object.entries(STARTERS)) if (loads(imports, starter)) needed.add(name)
  }
  return [...needed]
}
