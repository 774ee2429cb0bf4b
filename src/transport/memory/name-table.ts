/**
 * Name table (any thread adds, any thread reads): word 0 LOCK, word 1 COUNT, then entries of 128 bytes: word 0 the length, then UTF-8.
 * Entries are written once, before COUNT is raised over them, and never change.
 */

// Taken before plugins can replace them.
const { compareExchange, load, store } = Atomics
const NAMES_LOCK_WORD = 0
const NAMES_COUNT_WORD = 1
const NAMES_DATA_BYTE = 64
const NAMES_ENTRY_BYTES = 128

/** Names that a table holds at most; a further one gets the number 0, whose name is `other`. */
export const NAMES_MAX = 1024
const NAME_MAX_BYTES = NAMES_ENTRY_BYTES - 4

export function createNameTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(NAMES_DATA_BYTE + NAMES_MAX * NAMES_ENTRY_BYTES)
}

/** Small numbers for names, the same in every thread. Names come at boot and are never taken out. */
export class NameTable {
  readonly #control: Int32Array
  readonly #lengths: Int32Array
  readonly #bytes: Buffer
  /** Names that this thread has read so far, by number. */
  readonly #names: string[] = []
  readonly #numbers = new Map<string, number>()

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, NAMES_DATA_BYTE >> 2)
    this.#lengths = new Int32Array(memory, NAMES_DATA_BYTE)
    this.#bytes = Buffer.from(memory, NAMES_DATA_BYTE)
    this.intern('other')
  }

  /** The name's number, the same in all threads. Boot-time: it may spin for another thread's few writes. */
  intern(fullName: string): number {
    const name = fitting(fullName)
    this.#refresh()
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    // Its holder keeps it for one short copy; pairs with the store below.
    while (compareExchange(this.#control, NAMES_LOCK_WORD, 0, 1) !== 0);
    try {
      this.#refresh()
      const raced = this.#numbers.get(name)
      if (raced !== undefined) return raced
      const number = this.#names.length
      if (number === NAMES_MAX) return 0
      const bytes = Buffer.from(name)
      this.#bytes.set(bytes, number * NAMES_ENTRY_BYTES + 4)
      this.#lengths[(number * NAMES_ENTRY_BYTES) >> 2] = bytes.length
      // Publishes the entry's plain writes; pairs with the load in #refresh.
      store(this.#control, NAMES_COUNT_WORD, number + 1)
      this.#names.push(name)
      this.#numbers.set(name, number)
      return number
    } finally {
      store(this.#control, NAMES_LOCK_WORD, 0)
    }
  }

  /** The name of a number that some thread was given. */
  nameOf(number: number): string {
    if (number >= this.#names.length) this.#refresh()
    return this.#names[number] ?? 'other'
  }

  #refresh(): void {
    const count = load(this.#control, NAMES_COUNT_WORD)
    while (this.#names.length < count) {
      const at = this.#names.length * NAMES_ENTRY_BYTES
      const name = this.#bytes.toString('utf8', at + 4, at + 4 + this.#lengths[at >> 2]!)
      this.#numbers.set(name, this.#names.length)
      this.#names.push(name)
    }
  }
}

/** The part of a name that fits into its entry, cut between characters: all threads must have the same text. */
function fitting(name: string): string {
  if (name.length * 3 <= NAME_MAX_BYTES) return name
  const { read } = new TextEncoder().encodeInto(name, new Uint8Array(NAME_MAX_BYTES))
  return name.slice(0, read)
}
