import { isLoopback } from '../../core/config/loopback.ts'

/** Names that every browser and resolver takes for this machine. */
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'] as const

/**
 * The host names that a listener answers to. A page whose own name was pointed at this address (DNS rebinding) has the right origin for
 * the browser, and only its `Host` gives it away.
 */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>
  /** `.example.com` for `*.example.com`. */
  readonly #endings: readonly string[]
  readonly #isAny: boolean
  /** Clients send one spelling over and over: it is compared, and nothing is parsed. */
  #lastAllowed: string | null = null

  /** @param listed none: the loopback names and `bound` on a loopback address, else anything */
  constructor(listed: readonly string[], bound: string) {
    const names = listed.length === 0 && isLoopback(bound) ? [...LOOPBACK_NAMES, bracketed(bound)] : listed
    this.#isAny = names.length === 0 || names.includes('*')
    this.#names = new Set(names)
    this.#endings = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  }

  /** @param host the value of the header, with its port if it has one */
  allows(host: string): boolean {
    if (this.#isAny || host === this.#lastAllowed) return true
    const name = nameOf(host)
    if (!this.#names.has(name) && !this.#endings.some((end) => name.length > end.length && name.endsWith(end)))
      return false
    this.#lastAllowed = host
    return true
  }
}

/** Without the port and the dot of the root, in lower case. */
function nameOf(host: string): string {
  return host
    .toLowerCase()
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
}

/** IPv6 addresses have brackets in a URL. */
function bracketed(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address
}
