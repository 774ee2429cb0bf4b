import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { ServerName } from './programs.ts'

const HERE = import.meta.dirname
const STARTERS: Readonly<Record<string, ServerName>> = {
  'postgres.ts': 'postgres',
  'redis.ts': 'redis',
  'nginx.ts': 'nginx',
  '../browser.ts': 'chromium',
}
const IMPORT = /\bfrom '(\.{1,2}\/[^']+\.ts)'/g

/** The servers that test files start, by what they and their fixtures import. */
export function serversNeededBy(files: readonly string[]): ServerName[] {
  const seen = new Set(files.map((file) => resolve(file)))
  const needed = new Set<ServerName>()
  for (const file of seen) {
    const starter = STARTERS[relative(HERE, file)]
    if (starter !== undefined) needed.add(starter)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const imported = resolve(dirname(file), path!)
      // A test may hold the text of a module that is not there.
      if (imported.includes('/test/') && existsSync(imported)) seen.add(imported)
    }
  }
  return [...needed]
}
