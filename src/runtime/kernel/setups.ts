import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { loadModule } from '../../core/modules/load-module.ts'
import type { PluginFile } from './discover.ts'

/** Its plugins have access rules of their own: no `app.ts` is for them. */
const OPERATORS_DOMAIN = 'system'

/** A file that registers hooks for more than one plugin. */
export interface SetupFile {
  readonly hooksOf: 'domain' | 'application'
  /** Null of an application. */
  readonly domain: string | null
  /** What its hooks do is done by it: `shop.domain`, `app`. */
  readonly name: string
  readonly path: string
}

/**
 * `app.ts` of each of the domains' folders, then `domain.ts` of each domain, as far as they are for one of the plugins: code that is for none of a
 * thread's plugins is not loaded there.
 */
export function findSetups(
  domainsDirs: readonly string[],
  plugins: readonly Pick<PluginFile, 'domain'>[],
): SetupFile[] {
  const domains = new Set(plugins.map(({ domain }) => domain))
  const isOfApplication = [...domains].some((domain) => domain !== OPERATORS_DOMAIN)
  const applications = domainsDirs.flatMap((root): SetupFile[] => {
    const path = isOfApplication ? fileIn(root, 'app') : undefined
    return path === undefined ? [] : [{ hooksOf: 'application', domain: null, name: 'app', path }]
  })
  const ofDomains = domainsDirs.flatMap((root) =>
    [...domains].sort().flatMap((domain): SetupFile[] => {
      const path = fileIn(join(root, domain), 'domain')
      return path === undefined ? [] : [{ hooksOf: 'domain', domain, name: `${domain}.domain`, path }]
    }),
  )
  return [...applications, ...ofDomains]
}

/** True when the hooks of the file are for the plugins of the domain. */
export function isFor(setup: SetupFile, domain: string): boolean {
  return setup.domain === null ? domain !== OPERATORS_DOMAIN : setup.domain === domain
}

/** Loads the function of a setup. @throws PLUGIN_INVALID */
export async function loadSetup({ path }: SetupFile): Promise<(tools: object) => unknown> {
  const run = (await loadModule(path)).default
  if (typeof run === 'function' && !/^class\b/.test(Function.prototype.toString.call(run)))
    return run as (tools: object) => unknown
  throw new HeddleError(
    'PLUGIN_INVALID',
    `${shown(path)} must have a function as its default export: \`export default ({ http }: Tools) => http.before(…)\``,
  )
}

function fileIn(folder: string, name: string): string | undefined {
  return ['.ts', '.js', '.mjs'].map((ending) => join(folder, name + ending)).find((path) => existsSync(path))
}
