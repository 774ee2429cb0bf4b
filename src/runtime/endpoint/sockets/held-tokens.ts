// Tokens that hold a stream or a WebSocket open.
import type { Awaitable } from '../../../contracts/common.ts'

/** Longest time until the clock is looked at again: it may be set meanwhile. Milliseconds; less than what a timer takes. */
const CLOCK_LOOK_MS = 600_000
/** How soon a revoked token loses what it holds open. Milliseconds. */
const REVOCATION_LOOK_MS = 1000

type TokenEnd = 'has expired' | 'was revoked'

interface Held {
  readonly claims: object
  readonly onEnd: (why: TokenEnd) => void
}

/** The tokens of one thread that hold a stream or a WebSocket open. */
export class HeldTokens {
  /** Tells whether the token with these claims is revoked; null while nothing can. */
  isRevoked: ((claims: object) => Awaitable<boolean>) | null = null
  readonly #held = new Set<Held>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Calls back once: when a token's time is up, by the `exp` of its claims in seconds since 1970 (without an `exp` it never is), or when it
   * was revoked.
   * @param until ends the wait
   */
  hold(claims: unknown, until: AbortSignal, onEnd: (why: TokenEnd) => void): void {
    if (typeof claims !== 'object' || claims === null || until.aborted) return
    const held = { claims, onEnd }
    this.#held.add(held)
    this.#timer ??= setInterval(() => this.#look(), REVOCATION_LOOK_MS).unref()
    until.addEventListener('abort', () => this.#letGo(held), { once: true })
    const { exp } = claims as { exp?: unknown }
    if (typeof exp === 'number' && Number.isFinite(exp)) atTime(exp * 1000, until, () => onEnd('has expired'))
  }

  #letGo(held: Held): void {
    this.#held.delete(held)
    if (this.#held.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const { isRevoked } = this
    if (isRevoked === null) return
    for (const held of this.#held) void this.#ask(held, isRevoked)
  }

  async #ask(held: Held, isRevoked: (claims: object) => Awaitable<boolean>): Promise<void> {
    try {
      if ((await isRevoked(held.claims)) && this.#held.delete(held)) held.onEnd('was revoked')
    } catch {
      // While it cannot be told, what is open stays open.
    }
  }
}

function atTime(timeMs: number, until: AbortSignal, onTime: () => void): void {
  let timer: NodeJS.Timeout
  const look = (): void => {
    const leftMs = timeMs - Date.now()
    if (leftMs <= 0) return onTime()
    timer = setTimeout(look, Math.min(leftMs, CLOCK_LOOK_MS)).unref()
  }
  until.addEventListener('abort', () => clearTimeout(timer), { once: true })
  look()
}
