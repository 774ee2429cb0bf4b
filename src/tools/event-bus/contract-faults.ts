/** Faults of the contracts, as every thread finds them when it starts: each is told once, and again when it was mended and is back. */
export class ContractFaults {
  readonly #log: (message: string) => void
  #known: ReadonlySet<string> = new Set()

  constructor(log: (message: string) => void) {
    this.#log = log
  }

  /** @param messages all that a thread has found */
  tell(messages: readonly string[]): void {
    for (const message of messages) if (!this.#known.has(message)) this.#log(message)
    this.#known = new Set(messages)
  }
}
