// Revoked tokens: the log of them, and the view of a thread.

import { createHash } from 'node:crypto'
import type { Claims } from '../../contracts/auth.ts'
import type { State } from '../../contracts/state.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Generation } from '../../transport/memory/words.ts'

/** Where the tool `state` keeps them: a count, and an entry under each number up to it, until its token has expired. */
const NAMESPACE = 'auth.revoked'
const COUNT_KEY = 'count'
/** How soon a token that another replica has revoked is refused here. Milliseconds. */
const LOOK_MS = 1000
/** An entry follows its number within this time, or its writer has died between the two. Milliseconds. */
const ENTRY_WAIT_MS = 10_000
/** Entries that are read from `state`, or told to a thread, at a time. */
const PAGE = 1000
/** About 100 bytes each, in every thread. */
const MAX_REVOKED = 200_000

/** A token that is refused until it expires anyway: its id, and that time in seconds since 1970. */
type Revocation = readonly [id: string, untilSec: number]

/** What a thread has not yet heard of. */
export interface RevocationPage {
  readonly revoked: readonly Revocation[]
  /** As far as the thread has heard of them now. */
  readonly generation: number
  readonly hasMore: boolean
}

/** The revoked tokens, in the primary: what this process revokes goes to `state`, and what other replicas revoke comes from there. */
export class RevocationLog {
  readonly #state: () => State | undefined
  readonly #generation: Generation
  readonly #warn: (message: string) => void
  /** Revocations by id, each with the generation at which it came; the youngest last. */
  readonly #revoked = new Map<string, { untilSec: number; generation: number }>()
  /** Numbers up to this one were read from `state`, but for those that are awaited. */
  #readTo = 0
  /** Numbers without an entry yet, and since when. */
  readonly #awaited = new Map<number, number>()
  #reading: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #isFaulty = false

  /** @param state undefined when no such tool is installed: then they are this process's alone */
  constructor(state: () => State | undefined, generation: Generation, warn: (message: string) => void) {
    this.#state = state
    this.#generation = generation
    this.#warn = warn
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    this.#look()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /**
   * From when this resolves, every thread of this process refuses the token; within a second or so every replica does.
   * @throws AUTH_REVOCATIONS_FULL, and what `state` throws
   */
  async revoke(id: string, untilSec: number): Promise<void> {
    const ttlMs = Math.ceil(untilSec * 1000 - Date.now())
    if (ttlMs <= 0 || this.#revoked.has(id)) return
    if (this.#revoked.size >= MAX_REVOKED) {
      this.#forgetExpired()
      if (this.#revoked.size >= MAX_REVOKED)
        throw new HeddleError('AUTH_REVOCATIONS_FULL', `${MAX_REVOKED} tokens are revoked and have not expired yet`)
    }
    const state = this.#state()
    if (state !== undefined) {
      const number = await state.increment(COUNT_KEY, 1, { namespace: NAMESPACE })
      await state.set(String(number), [id, untilSec], { namespace: NAMESPACE, ttlMs })
    }
    this.#add([id, untilSec])
  }

  /** @throws AUTH_UNAVAILABLE while it is not known what other replicas have revoked */
  async after(generation: number): Promise<RevocationPage> {
    if (this.#generation.current === 0) {
      await this.#look()
      if (this.#generation.current === 0)
        throw new HeddleError(
          'AUTH_UNAVAILABLE',
          'It is not known yet which tokens are revoked: the tool state does not answer',
        )
    }
    const revoked: Revocation[] = []
    let heardOf = this.#generation.current
    let hasMore = false
    for (const [id, each] of this.#revoked) {
      if (each.generation <= generation) continue
      hasMore = revoked.length === PAGE
      if (hasMore) break
      revoked.push([id, each.untilSec])
      heardOf = each.generation
    }
    return { revoked, generation: hasMore ? heardOf : this.#generation.current, hasMore }
  }

  #add([id, untilSec]: Revocation): void {
    if (this.#revoked.has(id)) return
    const generation = Math.max(1, this.#generation.current) + 1
    this.#revoked.set(id, { untilSec, generation })
    this.#generation.current = generation
  }

  /** One look at a time; never rejects. */
  #look(): Promise<void> {
    this.#reading ??= this.#read()
      .then(
        () => {
          this.#isFaulty = false
          if (this.#generation.current === 0) this.#generation.current = 1
        },
        (thrown) => {
          if (!this.#isFaulty)
            this.#warn(`Tokens that other replicas revoke are not known at the moment: ${messageOf(thrown)}`)
          this.#isFaulty = true
        },
      )
      .finally(() => {
        this.#reading = null
      })
    return this.#reading
  }

  async #read(): Promise<void> {
    const state = this.#state()
    if (state === undefined) return
    const count = (await state.get<number>(COUNT_KEY, { namespace: NAMESPACE })) ?? 0
    if (this.#generation.current === 0) {
      // Most numbers belong to tokens that have expired: only what is there is read.
      const keys = await state.keys({ namespace: NAMESPACE })
      await this.#readEntries(state, keys.map(Number).filter(Number.isInteger))
    } else {
      // The store was emptied, and counts anew.
      if (count < this.#readTo) this.#readTo = 0
      const nowMs = performance.now()
      for (let number = Math.max(this.#readTo, count - MAX_REVOKED) + 1; number <= count; number++)
        this.#awaited.set(number, nowMs)
      await this.#readEntries(state, [...this.#awaited.keys()])
      for (const [number, sinceMs] of this.#awaited) if (nowMs - sinceMs > ENTRY_WAIT_MS) this.#awaited.delete(number)
    }
    this.#readTo = count
    if (this.#revoked.size > PAGE) this.#forgetExpired()
  }

  async #readEntries(state: State, numbers: readonly number[]): Promise<void> {
    for (let from = 0; from < numbers.length; from += PAGE) {
      const page = numbers.slice(from, from + PAGE)
      const entries = await Promise.all(
        page.map((number) => state.get<Revocation>(String(number), { namespace: NAMESPACE })),
      )
      entries.forEach((entry, index) => {
        if (!Array.isArray(entry) || typeof entry[0] !== 'string' || typeof entry[1] !== 'number') return
        this.#awaited.delete(page[index]!)
        this.#add(entry)
      })
    }
  }

  #forgetExpired(): void {
    const nowSec = Date.now() / 1000
    for (const [id, { untilSec }] of this.#revoked) if (untilSec <= nowSec) this.#revoked.delete(id)
  }
}

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
