/** Faults of the contracts, which every thread finds when it starts. Each is logged once, and again when it was fixed and has come back. */
export class ContractFaults {
  readonly #log: (message: string) => void
  #known: ReadonlySet<string> = new Set()

  constructor(log: (message: string) => void) {
    this.#log = log
  }

  /** @param messages all faults that a thread has found */
  tell(messages: readonly string[]): void {
    for (const message of messages) if (!this.#known.has(message)) this.#log(message)
    this.#known = new Set(messages)
  }
}
