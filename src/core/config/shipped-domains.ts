import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const isPackage = import.meta.url.endsWith('.js')
/** In the package it is alone in its folder. In the repository the examples are beside it. */
const SHIPPED = fileURLToPath(new URL('../../../domains', import.meta.url))
/** For the repository: a folder with the system domain alone, by links. */
const LINKED = fileURLToPath(new URL('../../../node_modules/.cache/heddle-system', import.meta.url))

/** The folders of an application, and behind them one with the shipped system domain, unless one of them has its own. */
export function withShippedDomains(folders: readonly string[]): readonly string[] {
  if (folders.some((folder) => existsSync(join(folder, 'system')))) return folders
  const shipped = isPackage ? SHIPPED : linked()
  return shipped === null ? folders : [...folders, shipped]
}

/** Null where it cannot be made: on a disk that is read-only, and beside an application that has only a part of the repository. */
function linked(): string | null {
  const source = join(SHIPPED, 'system')
  if (!existsSync(source)) return null
  const names = readdirSync(source)
  const isWhole = names.every((name) => existsSync(join(LINKED, 'system', name)))
  if (isWhole) return LINKED
  try {
    mkdirSync(dirname(LINKED), { recursive: true })
    const made = mkdtempSync(`${LINKED}-`)
    mkdirSync(join(made, 'system'))
    for (const name of names) symlinkSync(join(source, name), join(made, 'system', name))
    rmSync(LINKED, { recursive: true, force: true })
    renameSync(made, LINKED)
  } catch {
    // Another process may have been faster.
  }
  return existsSync(join(LINKED, 'system')) ? LINKED : null
}
