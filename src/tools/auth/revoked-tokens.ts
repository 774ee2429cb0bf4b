import { createHash } from 'node:crypto'
import type { Claims } from '../../contracts/auth.ts'
import type { Generation } from '../../transport/memory/words.ts'
import type { RevocationPage } from './revocation-log.ts'

/** A longer id is kept as its hash. Characters. */
const ID_MAX = 128
/** Expired ones are forgotten when there are more than this, and twice as many as after the last time. */
const FORGET_FROM = 1000

/** The revoked tokens as one thread knows them. Whether it knows all is one look at shared memory; only what is new is asked for. */
export class RevokedTokens {
  readonly #generation: Generation
  readonly #after: (generation: number) => Promise<RevocationPage>
  readonly #until = new Map<string, number>()
  /** As far as this thread has heard of them; before it has asked for the first time, below any. */
  #heardOf = -1
  #asking: Promise<void> | null = null
  #forgetAt = FORGET_FROM

  constructor(generation: Generation, after: (generation: number) => Promise<RevocationPage>) {
    this.#generation = generation
    this.#after = after
  }

  /** A promise only when there is something new, or at first. @throws AUTH_UNAVAILABLE */
  has(claims: Claims): boolean | Promise<boolean> {
    if (this.#generation.current > this.#heardOf) return this.#ask().then(() => this.#has(claims))
    return this.#has(claims)
  }

  #has(claims: Claims): boolean {
    return this.#until.size > 0 && this.#until.has(revocationId(claims))
  }

  async #ask(): Promise<void> {
    // What comes while an answer is on its way is not in it.
    while (this.#generation.current > this.#heardOf) {
      this.#asking ??= this.#askOnce().finally(() => {
        this.#asking = null
      })
      await this.#asking
    }
  }

  async #askOnce(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const page = await this.#after(this.#heardOf)
      for (const [id, untilSec] of page.revoked) this.#until.set(id, untilSec)
      this.#heardOf = page.generation
      hasMore = page.hasMore
    }
    if (this.#until.size < this.#forgetAt) return
    const nowSec = Date.now() / 1000
    for (const [id, untilSec] of this.#until) if (untilSec <= nowSec) this.#until.delete(id)
    this.#forgetAt = Math.max(FORGET_FROM, 2 * this.#until.size)
  }
}

/** What a token is known by when it is revoked: its `jti` and issuer; without a `jti`, all that it says. */
export function revocationId(claims: Claims): string {
  const { jti, iss } = claims
  const id = typeof jti === 'string' && jti !== '' ? `${String(iss ?? '')} ${jti}` : JSON.stringify(claims)
  return id.length <= ID_MAX ? id : createHash('sha256').update(id).digest('base64url')
}
