/** How long a document is served before anybody looks whether it is still right, milliseconds. */
const FRESH_MS = 1000

export const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * A JSON document that is made of some facts, sent as bytes. All of it is work for the listener's thread, so the facts are gathered at
 * most once a second, when somebody asks, and the document is made anew only when they have changed.
 */
export class JsonDocument<Facts> {
  readonly #gather: () => Promise<Facts>
  readonly #make: (facts: Facts) => Promise<object>
  #bytes: Promise<Uint8Array> | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #made: { of: string; bytes: Uint8Array } | undefined

  constructor(gather: () => Promise<Facts>, make: (facts: Facts) => Promise<object>) {
    this.#gather = gather
    this.#make = make
  }

  /** Whoever asks meanwhile gets the same one. A failed attempt is not kept. */
  read(): Promise<Uint8Array> {
    if (this.#bytes !== undefined && performance.now() - this.#lookedMs < FRESH_MS) return this.#bytes
    this.#lookedMs = performance.now()
    const bytes = this.#read()
    this.#bytes = bytes
    bytes.catch(() => {
      if (this.#bytes === bytes) this.#bytes = undefined
    })
    return bytes
  }

  async #read(): Promise<Uint8Array> {
    const facts = await this.#gather()
    const of = JSON.stringify(facts)
    if (this.#made?.of !== of) this.#made = { of, bytes: Buffer.from(JSON.stringify(await this.#make(facts))) }
    return this.#made.bytes
  }
}
