import { existsSync } from 'node:fs'
import { mkdir, readdir, symlink } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { discoverMigrations } from '../../stores/migrations/files.ts'

/** A domain: its name in one of the domain folders (DOMAINS_DIR), or the folder itself. */
export type DomainChoice = string | URL

/** Finds the folder of a domain. @throws when there is none; the message lists the domains that exist */
export async function domainFolder(choice: DomainChoice, roots: readonly string[]): Promise<string> {
  if (choice instanceof URL || isAbsolute(choice) || /[\\/]/.test(choice)) {
    const folder = resolve(choice instanceof URL ? fileURLToPath(choice) : choice)
    if (!existsSync(folder)) throw new Error(`There is no domain folder ${folder}`)
    return folder
  }
  const found = roots.map((root) => join(root, choice)).find((folder) => existsSync(folder))
  if (found !== undefined) return found
  const names = (await Promise.all(roots.map((root) => readdir(root, { withFileTypes: true }))))
    .flat()
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  throw new Error(`There is no domain ${choice} in ${roots.join(', ')}, but ${names.join(', ')}`)
}

/** The folders whose `app.ts` is for the chosen domains: those of DOMAINS_DIR, and that of each domain from elsewhere. */
export function rootsOf(chosen: readonly string[], roots: readonly string[]): string[] {
  const own = chosen.map((domain) => dirname(domain))
  return [...new Set([...(own.some((root) => roots.includes(root)) ? roots : []), ...own])]
}

/**
 * Makes a folder with the chosen domains alone, and with the hooks of their application, by links to their files.
 * For domains whose migrations the chosen ones depend on, it holds the migrations.
 * @returns the folders of domains in it, one for each root
 */
export async function linkDomains(
  folder: string,
  chosen: readonly string[],
  roots: readonly string[],
): Promise<string[]> {
  await mkdir(folder)
  const sources = rootsOf(chosen, roots)
  const places = sources.map((_, n) => join(folder, String(n)))
  for (const [n, root] of sources.entries()) {
    const place = places[n]!
    await mkdir(place)
    for (const name of await readdir(root))
      if (/^app\.(?:ts|js|mjs)$/.test(name)) await symlink(join(root, name), join(place, name))
    for (const domain of chosen) if (dirname(domain) === root) await linkFiles(domain, join(place, basename(domain)))
  }
  const names = chosen.map((domain) => basename(domain))
  const known = await discoverMigrations([...new Set([...roots, ...sources])])
  const wanted = new Set(names)
  for (const domain of wanted) {
    for (const migration of known) {
      if (migration.domain !== domain) continue
      for (const needed of migration.depends) wanted.add(needed.split('/')[0]!)
    }
  }
  for (const domain of wanted) {
    const source = known.find((migration) => migration.domain === domain)
    if (names.includes(domain) || source === undefined) continue
    await mkdir(join(places[0]!, domain))
    await symlink(dirname(source.path), join(places[0]!, domain, 'migrations'))
  }
  return places
}

async function linkFiles(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const name of await readdir(from)) await symlink(join(from, name), join(to, name))
}
