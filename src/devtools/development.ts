// What `heddle dev` does beside serving: it watches the sources, and loads what is saved.
import { existsSync, type FSWatcher, readdirSync, readFileSync, statSync, watch } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LogLevel } from '../contracts/logger.ts'
import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'
import { shown } from '../core/errors/places.ts'
import { findPlugins, isPluginFile } from '../runtime/kernel/discover.ts'
import { findSetups } from '../runtime/kernel/plugins.ts'
import { again } from '../stores/migrations/script-fault.ts'

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

/** A class or a function that is a plugin, as a file of one exports it. */
const PLUGIN = /^export default (?:plugin\b|(?:abstract )?class\b.*\bextends Plugin\b)/m
/** The runtime's own sources. */
const RUNTIME = fileURLToPath(new URL('..', import.meta.url))
const VARIABLES_FILE = resolve('.env')

export interface DevelopmentOptions {
  settings: Pick<Settings, 'domainsDir' | 'toolsDir' | 'dbAutoMigrate'>
  /** Replaces the lanes. Resolves when that is over, also when it failed. */
  reload: (why: string) => Promise<void>
  /** Applies the migrations that are pending. Rejects when one fails. */
  migrate: () => Promise<void>
  log: (level: LogLevel, message: string) => void
}

/**
 * The part that `npm run dev` adds: it reloads the lanes on each change in the domains, applies migrations as they appear, and logs which other
 * changes need a restart.
 */
export class Development {
  readonly #options: DevelopmentOptions
  /** Files that have changed since the lanes were last replaced. */
  readonly #changed = new Set<string>()
  readonly #reported = new Set<string>()
  readonly #misplaced = new Set<string>()
  /** Files that the primary thread has loaded. */
  readonly #primaryFiles = new Set<string>()
  #isReloading = false
  #migrating: Promise<void> = Promise.resolve()

  constructor(options: DevelopmentOptions) {
    this.#options = options
  }

  /**
   * @param serving resolves when the process serves, which the search for the primary's files is not to hold up
   * @returns a function that ends the watch
   */
  start(serving: Promise<unknown> = Promise.resolve()): () => void {
    again.how = 'save it: it is applied then'
    const { settings, log } = this.#options
    void serving.then(
      () => {
        this.#addPrimaryFiles()
        for (const root of settings.domainsDir) this.#reportMisplaced(filesBelow(root))
      },
      () => {},
    )
    return watchCode({
      folders: [...new Set([...settings.domainsDir, settings.toolsDir, RUNTIME.slice(0, -1)])],
      files: [VARIABLES_FILE],
      onChange: (files) => this.#onChange(files),
      onFault: (fault) => log('WARNING', fault),
    })
  }

  #onChange(files: readonly string[]): void {
    const { domainsDir } = this.#options.settings
    const isOfDomains = (file: string): boolean => domainsDir.some((folder) => file.startsWith(folder + sep))
    const isMigration = (file: string): boolean => file.endsWith('.sql')
    const own = files.filter(isOfDomains)
    const code = own.filter((file) => !isMigration(file))
    for (const file of code) this.#changed.add(file)
    this.#reportMisplaced(code)
    if (code.length > 0) void this.#reload()
    const others = files.filter((file) => !own.includes(file))
    this.#reportRestart(others, 'part of the process, not of its lanes')
    const migrations = own.filter(isMigration)
    if (!this.#options.settings.dbAutoMigrate) this.#reportRestart(migrations, 'DB_AUTO_MIGRATE is false')
    else if (migrations.length > 0) void this.#migrate()
    this.#addPrimaryFiles()
    const loaded = code.filter((file) => this.#primaryFiles.has(file))
    this.#reportRestart(loaded, 'the primary thread keeps what it has loaded')
  }

  /** After those that are being applied: one that is saved meanwhile may be missing there. */
  #migrate(): Promise<void> {
    const { migrate, log } = this.#options
    const failed = (error: unknown): void => {
      const message = messageOf(error)
      const end = message.includes('\n') ? '\n  Or ' : '. Save it again, or '
      log('ERROR', `${message}${end}begin anew: stop this process, npm run migrate -- reset, and start it again`)
    }
    this.#migrating = this.#migrating.then(migrate).catch(failed)
    return this.#migrating
  }

  /** One reload at a time. Files that change meanwhile share the next one. */
  async #reload(): Promise<void> {
    if (this.#isReloading) return
    this.#isReloading = true
    while (this.#changed.size > 0) {
      const files = [...this.#changed]
      this.#changed.clear()
      await this.#options.reload(`${listed(files)} ${files.length === 1 ? 'has' : 'have'} changed`)
    }
    this.#isReloading = false
  }

  /** Plugins are looked for in the folder `plugins` of each domain alone. */
  #reportMisplaced(files: readonly string[]): void {
    for (const file of files) {
      const root = this.#options.settings.domainsDir.find((folder) => file.startsWith(folder + sep))!
      const [domain, ...below] = relative(root, file).split(sep)
      if ((below.length === 2 && below[0] === 'plugins') || this.#misplaced.has(file)) continue
      if (!isPluginFile(basename(file)) || !PLUGIN.test(textOf(file))) continue
      this.#misplaced.add(file)
      const place = join(root, below.length === 0 ? '<domain>' : domain!, 'plugins', basename(file))
      this.#options.log('WARNING', `${shown(file)} is not loaded: a plugin belongs in ${shown(place)}`)
    }
  }

  /** Reports each file once. */
  #reportRestart(files: readonly string[], why: string): void {
    const fresh = files.filter((file) => !this.#reported.has(file))
    if (fresh.length === 0) return
    for (const file of fresh) this.#reported.add(file)
    this.#options.log('WARNING', `Restart to take this in: ${listed(fresh)} (${why})`)
  }

  /** Files are only added, since the primary thread keeps what it has loaded. */
  #addPrimaryFiles(): void {
    try {
      for (const file of primaryFiles(this.#options.settings.domainsDir)) this.#primaryFiles.add(file)
    } catch (error) {
      this.#options.log('DEBUG', `The files of the primary thread are not known: ${messageOf(error)}`)
    }
  }
}

/** The name of the first file, and the number of the others. */
function listed(files: readonly string[]): string {
  return files.length === 1 ? shown(files[0]!) : `${shown(files[0]!)} and ${files.length - 1} more`
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.split(sep).includes('node_modules'))
    .map((name) => join(folder, name))

/** Nothing for a file that is gone again. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Milliseconds without a change after which all changes count as one: saving a file or checking out a branch causes several. */
const SETTLE_MS = 50
const IS_SOURCE = /\.(?:[cm]?[jt]sx?|json|sql|html|css|svg)$/
/** Files that editors write beside a file while it is edited, and files that no thread loads. */
const IS_IGNORED = /^\.|\.(?:test|spec|d)\.[cm]?[jt]sx?$/

export interface CodeWatchOptions {
  /** Folders to watch, with all folders below them. */
  folders: readonly string[]
  /** Single files to watch that are not sources. Other files beside them do not count. */
  files?: readonly string[]
  /** Called with the absolute paths of the files that have changed since the last call. */
  onChange: (files: string[]) => void
  onFault: (message: string) => void
}

/**
 * Reports changes of sources, for `npm run dev`.
 * Each folder has a watcher of its own: on Linux Node's recursive watcher watches every single file, and loses a file that an editor
 * replaces by another.
 * @returns a function that ends the watch
 */
export function watchCode({ folders, files = [], onChange, onFault }: CodeWatchOptions): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()
  const changed = new Set<string>()
  const isBelow = (path: string): boolean => folders.some((folder) => path === folder || path.startsWith(`${folder}/`))

  const onEntry = (path: string, name: string): void => {
    const isFile = files.includes(path)
    if (!isFile) {
      if (!isBelow(path) || name === 'node_modules') return
      if (isDirectory(path)) return add(path, true)
      // A removed folder needs a new watcher when one of the same name appears.
      watchers.get(path)?.close()
      watchers.delete(path)
      if (!IS_SOURCE.test(name) || IS_IGNORED.test(name)) return
    }
    changed.add(path)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const paths = [...changed]
      changed.clear()
      onChange(paths)
    }, SETTLE_MS)
  }

  const add = (directory: string, isNew: boolean): void => {
    if (!watchFolder(directory) || !isBelow(directory)) return
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules') add(path, isNew)
      // The file was written before its folder was watched.
      else if (isNew) onEntry(path, entry.name)
    }
  }

  /** @returns false when the folder is watched already, or cannot be watched */
  const watchFolder = (directory: string): boolean => {
    if (watchers.has(directory)) return false
    try {
      const watcher = watch(directory, (_, name) => {
        if (name !== null) onEntry(join(directory, name), name)
      })
      watcher.on('error', (error) => onFault(`${directory} is not watched any more: ${messageOf(error)}`))
      watchers.set(directory, watcher)
      return true
    } catch (error) {
      if (isDirectory(directory)) onFault(`${directory} is not watched: ${messageOf(error)}`)
      return false
    }
  }

  for (const folder of folders) add(folder, false)
  for (const file of files) watchFolder(join(file, '..'))
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
