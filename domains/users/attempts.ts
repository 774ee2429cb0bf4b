import type { HttpContext, Tools } from '#heddle'

/** What counts, and how much of it is let through. */
export interface AttemptLimit {
  /** Keeps its counts apart from others. */
  namespace: string
  /** Attempts in one window; those beyond it are refused. */
  max: number
  windowMs: number
}

/** Counts attempts in fixed windows: one count for all lanes and, with a shared store, all replicas. */
export class Attempts {
  readonly #state: Tools['state']
  readonly #limit: AttemptLimit

  constructor(state: Tools['state'], limit: AttemptLimit) {
    this.#state = state
    this.#limit = limit
  }

  /** Counts one attempt. @returns false when it is one too many */
  async take(key: string): Promise<boolean> {
    return (await this.#add(key, 1)) <= this.#limit.max
  }

  /** An attempt that was none after all. */
  async giveBack(key: string): Promise<void> {
    await this.#add(key, -1)
  }

  async forget(key: string): Promise<void> {
    await this.#state.delete(key, { namespace: this.#limit.namespace })
  }

  /** The answer to an attempt too many. */
  refuse(context: HttpContext): { success: false; error: string } {
    context.setStatus(429)
    context.setHeader('retry-after', String(Math.ceil(this.#limit.windowMs / 1000)))
    return { success: false, error: 'Too many attempts, try again later' }
  }

  #add(key: string, by: number): Promise<number> {
    const { namespace, windowMs: ttlMs } = this.#limit
    return this.#state.increment(key, by, { namespace, ttlMs })
  }
}

/** Groups of an IPv6 address that belong to its network: whoever has one address of it has them all (RFC 6177). */
const NETWORK_GROUPS = 4
const ALL_GROUPS = 8

/** What is counted as one address: an IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(ip: string): string {
  if (!ip.includes(':') || ip.includes('.')) return ip
  const [before = [], after] = ip.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = after === undefined ? 0 : ALL_GROUPS - before.length - after.length
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...(after ?? [])]
  return groups.slice(0, NETWORK_GROUPS).join(':')
}
