export const JSON_TYPE = 'application/json; charset=utf-8'

/** Milliseconds for which a document is served without a new look at its facts. */
const FRESH_MS = 1000

/**
 * A document made from facts, a text or JSON, sent as bytes. It is made in the listener's thread, so the facts are gathered on demand, at most
 * once a second, and the document is made again only when they have changed.
 */
export class KeptDocument<Facts> {
  readonly #gather: () => Promise<Facts>
  readonly #make: (facts: Facts) => Promise<object | string>
  #bytes: Promise<Uint8Array> | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #made: { of: string; bytes: Uint8Array } | undefined

  constructor(gather: () => Promise<Facts>, make: (facts: Facts) => Promise<object | string>) {
    this.#gather = gather
    this.#make = make
  }

  /** Calls while the document is being made share it. A failed attempt is not kept. */
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
    if (this.#made?.of !== of) {
      const made = await this.#make(facts)
      this.#made = { of, bytes: Buffer.from(typeof made === 'string' ? made : JSON.stringify(made)) }
    }
    return this.#made.bytes
  }
}
