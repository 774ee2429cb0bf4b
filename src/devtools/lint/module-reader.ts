import path from 'node:path'
import { FileCache } from './file-cache.ts'
import { type ModuleFacts, readModule } from './module-facts.ts'

/** Names of files that hold TypeScript or JavaScript. */
export const SOURCE = /\.(?:[cm]?[jt]s|[jt]sx)$/

interface Read {
  facts: ModuleFacts
  /** The files of the domain that it imports, with the facts that were used to read it. */
  imports: ReadonlyMap<string, ModuleFacts | undefined>
}

const cache = new FileCache<Read>()

/** Reads the source files of one domain, each after the files that it imports, since their exports say what a name stands for. */
export class ModuleReader {
  readonly #folder: string
  readonly #unreadable: ReadonlySet<string>
  /** The files that were read for this report; each is read once, so that the report has one view of it. */
  readonly #done = new Map<string, ModuleFacts>()
  /** The files that are being read. In an import cycle nothing is known of the file that closes it. */
  readonly #open = new Set<string>()

  /** @param folder of the domain, absolute @param unreadable files that are taken as unknown */
  constructor(folder: string, unreadable: ReadonlySet<string>) {
    this.#unreadable = unreadable
    this.#folder = folder + path.sep
  }

  /** Must not be called again before it has resolved. @throws the errors of `stat` and `readFile` */
  async read(file: string): Promise<ModuleFacts> {
    const done = this.#done.get(file)
    if (done) return done
    this.#open.add(file)
    try {
      const { facts } = await cache.get(
        file,
        (text) => this.#parse(file, text),
        (known) => this.#isCurrent(known),
      )
      this.#done.set(file, facts)
      return facts
    } finally {
      this.#open.delete(file)
    }
  }

  async #parse(file: string, text: string): Promise<Read> {
    const imports = new Map<string, ModuleFacts | undefined>()
    const facts = await readModule(file, text, path.basename(file) === 'events.ts', async (specifier) => {
      const target = path.resolve(path.dirname(file), specifier)
      if (!target.startsWith(this.#folder) || !SOURCE.test(target)) return undefined
      imports.set(target, await this.#imported(target))
      return imports.get(target)?.exports
    })
    return { facts, imports }
  }

  async #isCurrent({ imports }: Read): Promise<boolean> {
    for (const [file, facts] of imports) if ((await this.#imported(file)) !== facts) return false
    return true
  }

  async #imported(file: string): Promise<ModuleFacts | undefined> {
    if (this.#open.has(file) || this.#unreadable.has(file)) return undefined
    try {
      return await this.read(file)
    } catch {
      // The file is missing or cannot be read: the type check reports that, and its exports stay unknown here.
      return undefined
    }
  }
}

/** Forgets files of a folder that are not among `kept`. */
export function forgetModules(folder: string, kept: ReadonlySet<string>): void {
  cache.prune(folder, kept)
}
