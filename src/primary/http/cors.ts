/**
 * Cross-origin rules. Source: Fetch standard, section 3.3 (CORS protocol).
 * No origin is allowed unless listed; `*` allows all of them, and those without credentials: their tokens travel in a header.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>
  readonly #any: boolean

  /** Header lines of an answer to a listed origin, behind `access-control-allow-origin`. */
  readonly #lines: string

  /** @param hasCredentials pages of listed origins may send cookies */
  constructor(origins: readonly string[], hasCredentials: boolean) {
    this.#origins = new Set(origins)
    this.#any = this.#origins.has('*')
    const credentials = hasCredentials ? 'access-control-allow-credentials: true\r\n' : ''
    this.#lines = `${credentials}access-control-expose-headers: x-request-id, retry-after, idempotency-replayed\r\nvary: origin\r\n`
  }

  /**
   * Header lines for an answer to a request of this origin, empty for none. Where origins are listed every answer varies by origin, also
   * the answer to an origin that is not allowed: a cache must not give it to an origin that is.
   */
  headFor(origin: string): string {
    if (this.#any) {
      return origin === ''
        ? ''
        : 'access-control-allow-origin: *\r\naccess-control-expose-headers: x-request-id, retry-after, idempotency-replayed\r\n'
    }
    if (!this.allows(origin)) return 'vary: origin\r\n'
    return `access-control-allow-origin: ${origin}\r\n${this.#lines}`
  }

  /** Header lines that a preflight's answer has beside `headFor`. @param requestedHeaders the value of `access-control-request-headers` */
  preflightHead(origin: string, methods: readonly string[], requestedHeaders: string): string {
    if (!this.allows(origin)) return ''
    const headers = /^[\w\-, ]+$/.test(requestedHeaders) ? `access-control-allow-headers: ${requestedHeaders}\r\n` : ''
    return `access-control-allow-methods: ${methods.join(', ')}\r\naccess-control-max-age: 600\r\n${headers}`
  }

  get enabled(): boolean {
    return this.#origins.size > 0
  }

  allows(origin: string): boolean {
    return this.#any || this.#origins.has(origin)
  }
}
