import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const TESTS = fileURLToPath(new URL('../..', import.meta.url))
const IMPORT = /\b(?:import|export)\s+(?!type\b)[^'"`]*?\bfrom '([^']+)'|\bimport\('([^']+)'\)|\bimport '([^']+)'/g

export interface Imports {
  /** The file and the helpers under test/ that it loads, and those that they load. */
  files: ReadonlySet<string>
  /** Modules and packages that one of them names, as they name them: `node:fs`, `#heddle/testing`. */
  packages: ReadonlySet<string>
}

/** What a test file loads, read from its text. Types alone do not count: nothing is loaded for them. */
export function importsOf(testFile: string): Imports {
  const files = new Set([resolve(testFile)])
  const packages = new Set<string>()
  for (const file of files) {
    for (const [, ...names] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const name = names.find((each) => each !== undefined)!
      if (!name.startsWith('.')) packages.add(name)
      else {
        const imported = resolve(dirname(file), name)
        // A test may hold the text of a module that is not there.
        if (imported.startsWith(TESTS) && imported.endsWith('.ts') && existsSync(imported)) files.add(imported)
      }
    }
  }
  return { files, packages }
}

/** Whether one of the files lies at a path under test/, or in a folder that ends with `/`. */
export function loads({ files }: Imports, path: string): boolean {
  const wanted = resolve(TESTS, path) + (path.endsWith('/') ? sep : '')
  return [...files].some((file) => (path.endsWith('/') ? file.startsWith(wanted) : file === wanted))
}
