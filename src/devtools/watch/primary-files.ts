import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { findPlugins } from '../../runtime/kernel/discover.ts'
import { findSetups } from '../../runtime/kernel/plugins.ts'

/** An import of a file, but not one that begins as one of types. What is found in a comment does no harm. */
const IMPORT =
  /\b(?:import|export)\b(?!\s+type\b)[^'"]*?\bfrom\s*['"](\.\.?\/[^'"\n]+)['"]|\b(?:import|require)\s*\(?\s*['"](\.\.?\/[^'"\n]+)['"]/g

/**
 * The files of domains that the primary thread has loaded: its plugins, the `domain.ts` and `app.ts` with their hooks, and the files of their domains that these import. They stay
 * loaded as they are until the process ends, whatever the lanes load.
 */
export function primaryFiles(domainsDirs: readonly string[]): Set<string> {
  const plugins = findPlugins(domainsDirs).filter(({ thread }) => thread === 'primary')
  const waiting = [...plugins, ...findSetups(domainsDirs, plugins)].map(({ path }) => path)
  const files = new Set<string>()
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (files.has(path) || !existsSync(path)) continue
    files.add(path)
    for (const [, from, alone] of readFileSync(path, 'utf8').matchAll(IMPORT))
      waiting.push(resolve(dirname(path), (from ?? alone)!))
  }
  return files
}
