import { resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { shown } from '../../core/files/shown-path.ts'
import { watchCode } from './code-watch.ts'
import { primaryFiles } from './primary-files.ts'

/** The runtime's own sources. */
const RUNTIME = fileURLToPath(new URL('../..', import.meta.url))
const VARIABLES_FILE = resolve('.env')

export interface DevelopmentOptions {
  settings: Pick<Settings, 'domainsDir' | 'toolsDir'>
  /** Replaces the lanes. Resolves when that is over, however it ended. */
  reload: (why: string) => Promise<void>
  log: (level: LogLevel, message: string) => void
}

/** What `npm run dev` adds: each change in the domains is live at once, and of each other change it is said that it is not. */
export class Development {
  readonly #options: DevelopmentOptions
  /** Changed while the lanes were being replaced. */
  readonly #due = new Set<string>()
  readonly #told = new Set<string>()
  /** As it was loaded. */
  readonly #ofPrimary = new Set<string>()
  #isReloading = false

  constructor(options: DevelopmentOptions) {
    this.#options = options
  }

  /** @returns a function that ends it */
  start(): () => void {
    const { settings, log } = this.#options
    void this.#lookAtPrimary()
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
    for (const file of code) this.#due.add(file)
    if (code.length > 0) void this.#reload()
    const others = files.filter((file) => !own.includes(file))
    this.#tellRestart(others, 'part of the process, not of its lanes')
    this.#tellRestart(own.filter(isMigration), 'migrations are applied at the start')
    void this.#lookAtPrimary().then(() => {
      const loaded = code.filter((file) => this.#ofPrimary.has(file))
      this.#tellRestart(loaded, 'the primary thread keeps what it has loaded')
    })
  }

  /** One at a time: what changes meanwhile has one more, together. */
  async #reload(): Promise<void> {
    if (this.#isReloading) return
    this.#isReloading = true
    while (this.#due.size > 0) {
      const files = [...this.#due]
      this.#due.clear()
      await this.#options.reload(
        files.length === 1 ? `${shown(files[0]!)} has changed` : `${listed(files)} have changed`,
      )
    }
    this.#isReloading = false
  }

  /** Once for each file. */
  #tellRestart(files: readonly string[], why: string): void {
    const fresh = files.filter((file) => !this.#told.has(file))
    if (fresh.length === 0) return
    for (const file of fresh) this.#told.add(file)
    this.#options.log('WARNING', `Restart to take this in: ${listed(fresh)} (${why})`)
  }

  /** What was loaded once stays loaded: files only come in. */
  async #lookAtPrimary(): Promise<void> {
    try {
      for (const file of await primaryFiles(this.#options.settings.domainsDir)) this.#ofPrimary.add(file)
    } catch (error) {
      this.#options.log('DEBUG', `The files of the primary thread are not known: ${messageOf(error)}`)
    }
  }
}

/** The first by name, and how many more. */
function listed(files: readonly string[]): string {
  return files.length === 1 ? shown(files[0]!) : `${shown(files[0]!)} and ${files.length - 1} more`
}
