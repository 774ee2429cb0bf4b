/** Ends the servers that were started for this case. */
export class Owner {
  readonly #ends: (() => unknown)[] = []
  reason = ''

  after(end: () => unknown): void {
    this.#ends.push(end)
  }
  skip(reason?: string): void {
    this.reason = reason ?? ''
  }
  async end(): Promise<void> {
    for (const end of this.#ends.reverse()) await end()
  }
}
