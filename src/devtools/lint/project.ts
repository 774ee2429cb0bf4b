import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../core/errors/description.ts'
import { classNameOf } from '../../runtime/kernel/discover.ts'
import { FileCache } from './file-cache.ts'
import { compareText, errorAt, type Finding } from './finding.ts'
import { type MigrationFacts, readMigration } from './migration-facts.ts'
import type { ModuleFacts } from './module-facts.ts'
import { forgetModules, ModuleReader, SOURCE } from './module-reader.ts'

/** The domains as they are on disk, parsed. */
export interface Project {
  domains: Domain[]
  modules: Module[]
  plugins: Plugin[]
  migrations: Migration[]
  /** Folders and files that cannot be read or parsed. */
  faults: Finding[]
}

export interface Domain {
  name: string
  /** Absolute; more than one when several of the domains' folders hold a domain of this name. */
  folders: string[]
}

/** A source file of a domain. */
export interface Module extends ModuleFacts {
  /** Absolute. */
  file: string
  domain: string
}

export interface Plugin extends Module {
  /** `<domain>.<ClassName>` */
  name: string
}

export interface Migration extends MigrationFacts {
  /** Absolute. */
  file: string
  domain: string
  /** The file's name without `.sql`. */
  stem: string
  /** `<domain>/<stem>` */
  id: string
}

/** The domain that `app.ts`, which belongs to none, counts as. */
const APPLICATION = 'app'

/** The name under which a `domain.ts` or an `app.ts` acts: `shop.domain`, `app`; undefined for another file. */
export function setupName({ file, domain }: Module, { domains }: Project): string | undefined {
  const folder = path.dirname(file)
  const isIn = (folders: readonly string[]): boolean => folders.includes(folder)
  if (/^domain\.(?:ts|js|mjs)$/.test(path.basename(file)) && domains.some(({ folders }) => isIn(folders)))
    return `${domain}.domain`
  const isOfAll = domains.some(({ folders }) => isIn(folders.map((each) => path.dirname(each))))
  return isOfAll && APP.test(path.basename(file)) ? APPLICATION : undefined
}

const APP = /^app\.(?:ts|js|mjs)$/

/** Names of files that are loaded as plugins. */
const PLUGIN = /^[^._].*(?<!\.test)\.(?:ts|js|mjs)$/
const migrations = new FileCache<MigrationFacts>()

/** Files that are left out, absolute, each with the reason. */
export type Unreadable = Readonly<Record<string, string>>

/** Reads one file after another, so that the thread can do other work in between. Unchanged files are not parsed again. */
export async function readProject(domainsDirs: readonly string[], unreadable: Unreadable = {}): Promise<Project> {
  const project: Project = { domains: [], modules: [], plugins: [], migrations: [], faults: [] }
  for (const folder of new Set(domainsDirs.map((dir) => path.resolve(dir)))) {
    const seen = new Set<string>()
    for (const name of await list(folder, 'directory', project.faults)) {
      addFolder(project.domains, name, path.join(folder, name))
      await readDomain(name, path.join(folder, name), project, { seen, unreadable })
    }
    for (const name of await list(folder, 'file', undefined)) {
      if (APP.test(name))
        await readSource(
          {
            modules: new ModuleReader(folder, new Set(Object.keys(unreadable))),
            file: path.join(folder, name),
            domain: APPLICATION,
          },
          project,
          { seen, unreadable },
        )
    }
    forgetModules(folder + path.sep, seen)
    migrations.prune(folder + path.sep, seen)
  }
  return project
}

async function readDomain(
  domain: string,
  folder: string,
  project: Project,
  { seen, unreadable }: { seen: Set<string>; unreadable: Unreadable },
): Promise<void> {
  const modules = new ModuleReader(folder, new Set(Object.keys(unreadable)))
  for (const file of await sourceFiles(folder, project.faults)) {
    const module = await readSource({ modules, file, domain }, project, { seen, unreadable })
    if (module === undefined) continue
    if (path.dirname(file) === path.join(folder, 'plugins') && PLUGIN.test(path.basename(file))) {
      project.plugins.push({ ...module, name: `${domain}.${module.className ?? classNameOf(file)}` })
    }
  }
  for (const name of await list(path.join(folder, 'migrations'), 'file', undefined)) {
    // What takes a migration back has its order from it.
    if (!name.endsWith('.sql') || name.endsWith('.down.sql')) continue
    const file = path.join(folder, 'migrations', name)
    seen.add(file)
    const facts = await attempt(() => migrations.get(file, readMigration), file, project.faults)
    const stem = name.slice(0, -'.sql'.length)
    if (facts) project.migrations.push({ ...facts, file, domain, stem, id: `${domain}/${stem}` })
  }
}

async function readSource(
  { modules, file, domain }: { modules: ModuleReader; file: string; domain: string },
  project: Project,
  { seen, unreadable }: { seen: Set<string>; unreadable: Unreadable },
): Promise<Module | undefined> {
  seen.add(file)
  if (Object.hasOwn(unreadable, file)) {
    project.faults.push(errorAt('parse', file, 1, `the file cannot be read: ${unreadable[file]}`))
    return undefined
  }
  const facts = await attempt(() => modules.read(file), file, project.faults)
  if (!facts) return undefined
  const module: Module = { ...facts, file, domain }
  project.modules.push(module)
  for (const { line, message } of facts.errors) project.faults.push(errorAt('parse', file, line, message))
  return module
}

/** All source files below the folder, in the order of their paths. */
async function sourceFiles(folder: string, faults: Finding[]): Promise<string[]> {
  const files = (await list(folder, 'file', faults)).filter((name) => SOURCE.test(name) && !/\.d\.[cm]?ts$/.test(name))
  const found = files.map((name) => path.join(folder, name))
  for (const name of await list(folder, 'directory', faults)) {
    found.push(...(await sourceFiles(path.join(folder, name), faults)))
  }
  return found
}

/** A link may lead to one: the runtime loads that, too. */
export const mayBeFile = (entry: Dirent): boolean => entry.isFile() || entry.isSymbolicLink()

/** Names in a folder, sorted. @param faults gets a finding when the folder cannot be read; without it the folder need not exist */
async function list(folder: string, kind: 'file' | 'directory', faults: Finding[] | undefined): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    const names = entries.filter((entry) => (kind === 'file' ? mayBeFile(entry) : entry.isDirectory()))
    return names
      .map((entry) => entry.name)
      .filter((name) => !name.startsWith('.') && name !== 'node_modules')
      .sort(compareText)
  } catch (error) {
    faults?.push(errorAt('parse', folder, 1, `the folder cannot be read: ${messageOf(error)}`))
    return []
  }
}

async function attempt<T>(read: () => Promise<T>, file: string, faults: Finding[]): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    const reason = error instanceof RangeError ? 'it is nested too deeply' : messageOf(error)
    faults.push(errorAt('parse', file, 1, `the file cannot be read: ${reason}`))
    return undefined
  }
}

function addFolder(domains: Domain[], name: string, folder: string): void {
  const known = domains.find((domain) => domain.name === name)
  if (known) known.folders.push(folder)
  else domains.push({ name, folders: [folder] })
}
