/** How long a document is served before it is made anew, milliseconds: making it is work for the listener's thread. */
const FRESH_MS = 1000

/** A JSON document that is made on demand, at most once a second, and sent as bytes. */
export class JsonDocument {
  readonly #make: () => Promise<object>
  #bytes: Promise<Uint8Array> | undefined
  #madeMs = Number.NEGATIVE_INFINITY

  constructor(make: () => Promise<object>) {
    this.#make = make
  }

  /** Whoever asks while it is being made gets the same one. A failed attempt is not kept. */
  read(): Promise<Uint8Array> {
    if (this.#bytes !== undefined && performance.now() - this.#madeMs < FRESH_MS) return this.#bytes
    this.#madeMs = performance.now()
    this.#bytes = this.#make().then((document) => Buffer.from(JSON.stringify(document)))
    this.#bytes.catch(() => {
      this.#bytes = undefined
    })
    return this.#bytes
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'
