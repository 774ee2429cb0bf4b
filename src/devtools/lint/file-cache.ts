import { readFile, stat } from 'node:fs/promises'

interface Entry<T> {
  mtimeMs: number
  bytes: number
  facts: Promise<T>
}

/** Data read from files, kept until a file's modification time or size changes. */
export class FileCache<T> {
  readonly #entries = new Map<string, Entry<T>>()

  /**
   * @param isCurrent says whether the kept data still holds; when it returns false, an unchanged file is read again too
   * @throws the errors of `stat` and `readFile`
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
    // A failed read is not kept: the caller gets the error, and the next one tries again.
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
