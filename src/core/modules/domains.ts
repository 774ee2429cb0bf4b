// What domains have in the folders of DOMAINS_DIR, and how a source file of one is loaded.
import { type Dirent, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Its routes have access rules of their own: no `app.ts` is for them. */
export const OPERATORS_DOMAIN = 'system'

/** A file or a folder of a domain. */
export interface DomainPart {
  readonly domain: string
  readonly path: string
}

/** A part of each domain that has it, like `plugins` or `events.ts`, in the order of the domains' names; none in what is no folder. */
export function partsOf(root: string, part: string): DomainPart[] {
  return foldersOf(root)
    .map((domain) => ({ domain, path: join(root, domain, part) }))
    .filter(({ path }) => existsSync(path))
}

/** Names of the folders in a folder, sorted, without those that begin with a dot; none in what is no folder. */
export const foldersOf = (folder: string): string[] =>
  entriesOf(folder)
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort()

/** None in what is no folder. */
export function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (thrown) {
    // Any other fault, for example a missing permission, must be reported.
    if (['ENOENT', 'ENOTDIR'].includes((thrown as NodeJS.ErrnoException).code ?? '')) return []
    throw thrown
  }
}

/** The file of a module of this name in a folder; undefined where there is none. */
export const moduleIn = (folder: string, name: string): string | undefined =>
  ['.ts', '.js', '.mjs'].map((ending) => join(folder, name + ending)).find((path) => existsSync(path))

declare const require: ((file: string) => Record<string, unknown>) | undefined

/**
 * Loads a source file in the same way in which this file was loaded: `import()` would make a second instance of every module that was loaded with
 * `require`. Under tsx or Node's own stripping of types the process loads ES modules.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  if (typeof require === 'function') return require(file)
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>
}
