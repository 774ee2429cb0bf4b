/** Counts the dead letters that were dropped for new ones, and tells of the first. */
export class DroppedLetters {
  readonly #tell: (message: string) => void
  #count = 0

  constructor(tell: (message: string) => void) {
    this.#tell = tell
  }

  /** Since the start of the process. */
  get count(): number {
    return this.#count
  }

  add(letters: number): void {
    if (this.#count === 0 && letters > 0) {
      this.#tell(
        'The dead-letter store is full: the oldest letters are dropped for new ones (EVENT_BUS_MAX_DEAD_BYTES). They are counted from now on, and this is not told again',
      )
    }
    this.#count += letters
  }
}
