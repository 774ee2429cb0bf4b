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
