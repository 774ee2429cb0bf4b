import { readFile, stat } from 'node:fs/promises'

interface Entry<T> {
  mtimeMs: number
  bytes: number
  facts: Promise<T>
}

/** What was read out of a file, kept until the file changes (time of modification or size). */
export class FileCache<T> {
  readonly #entries = new Map<string, Entry<T>>()

  /**
   * @param isCurrent of what was read before out of the same file: false when it must be read again all the same
   * @throws what `stat` and `readFile` throw
   */
  async get(
    file: string,
    read: (text: string) => T | Promise<T>,
    isCurrent: (facts: T) => boolean | Promise<boolean> = () => true,
  ): Promise<T> {
    const { mtimeMs, size } = await stat(file)
    const known = this.#entries.get(file)
    if (known && known.mtimeMs === mtimeMs && known.bytes === size && (await isCurrent(await known.facts))) {
      return known.facts
    }
    const facts = readFile(file, 'utf8').then((text) => read(text.replace(/^\u{feff}/u, '')))
    this.#entries.set(file, { mtimeMs, bytes: size, facts })
    // A failed read is tried again, and its caller gets the error.
    facts.catch(() => this.#entries.delete(file))
    return facts
  }

  /** Forgets files of a folder that are not among `kept`. */
  prune(folder: string, kept: ReadonlySet<string>): void {
    for (const file of this.#entries.keys()) {
      if (file.startsWith(folder) && !kept.has(file)) this.#entries.delete(file)
    }
  }
}
