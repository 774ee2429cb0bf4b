import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the package has the system domain. In the repository it is in `domains/`, which DOMAINS_DIR names by default. */
const PACKAGED = import.meta.url.endsWith('.js') ? fileURLToPath(new URL('../../../domains', import.meta.url)) : null

/** The folders of an application, and behind them the system domain of the package, unless one of them has its own. */
export function withShippedDomains(folders: readonly string[]): readonly string[] {
  if (PACKAGED === null || folders.some((folder) => existsSync(join(folder, 'system')))) return folders
  return [...folders, PACKAGED]
}
