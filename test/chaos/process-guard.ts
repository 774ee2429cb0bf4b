import type { Owner } from '../support/heddle.ts'

/** Ends what a run has started, however the run ends; stands where a test's own context stands elsewhere. */
export class ProcessGuard implements Owner {
  readonly #ends: (() => Promise<void>)[] = []

  after(end: () => Promise<void>): void {
    this.#ends.push(end)
  }

  /** Last started, first ended. May be called twice. */
  async end(): Promise<void> {
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) await end()
  }
}
