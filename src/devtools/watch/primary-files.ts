import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { findPlugins } from '../../runtime/kernel/discover.ts'
import { findSetups } from '../../runtime/kernel/setups.ts'

/**
 * The files of domains that the primary thread has loaded: its plugins, the `domain.ts` and `app.ts` with their hooks, and the files of their domains that these import. They stay
 * loaded as they are until the process ends, whatever the lanes load.
 */
export async function primaryFiles(domainsDirs: readonly string[]): Promise<Set<string>> {
  const plugins = findPlugins(domainsDirs).filter(({ thread }) => thread === 'primary')
  const waiting = [...plugins, ...findSetups(domainsDirs, plugins)].map(({ path }) => path)
  const files = new Set<string>()
  // Loaded on demand: a process in production does not need the parser.
  const { parseSource } = await import('../lint/syntax.ts')
  const { moduleImports } = await import('../lint/module-imports.ts')
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (files.has(path) || !existsSync(path)) continue
    files.add(path)
    for (const { specifier, typeOnly } of moduleImports(await parseSource(path, readFileSync(path, 'utf8')))) {
      if (!typeOnly && /^\.\.?\//.test(specifier)) waiting.push(resolve(dirname(path), specifier))
    }
  }
  return files
}
