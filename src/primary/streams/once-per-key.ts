/** Work that is done once for each key, whoever asks for it. */
export class OncePerKey {
  readonly #done = new Map<string, Promise<void>>()

  /** Resolves when it is done. What has failed is done again by the next one who asks. */
  run(key: string, work: () => Promise<void>): Promise<void> {
    let doing = this.#done.get(key)
    if (doing === undefined) {
      doing = work()
      this.#done.set(key, doing)
      doing.catch(() => this.#done.delete(key))
    }
    return doing
  }

  /** The next one who asks has it done again. */
  forget(key: string): void {
    this.#done.delete(key)
  }
}
