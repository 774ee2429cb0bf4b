// The tool `auth`.
import { threadId } from 'node:worker_threads'
import type { Auth, Claims } from '../../contracts/auth.ts'
import type { Awaitable } from '../../contracts/common.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { newSecret } from '../../core/schemas/secret-fields.ts'
import { GENERATION_BYTES, Generation } from '../../transport/memory/words.ts'
import { type Derivation, HashThreads, hashPassword, verifyPassword } from './passwords.ts'
import { RevocationLog, type RevocationPage, RevokedTokens, revocationId } from './revocations.ts'
import { CLOCK_TOLERANCE_SEC, Tokens } from './tokens.ts'

/** A derivation on its way to the primary: bytes in base64. */
type SentDerivation = Omit<Derivation, 'password' | 'salt'> & { password: string; salt: string }

/**
 * Passwords with scrypt, on threads of their own, one set for the process; tokens with HS256, and those of an identity provider. Nothing is
 * stored but which tokens are revoked, so any replica validates any token.
 */
export default class AuthTool implements Tool {
  readonly name = 'auth'
  #runtime: ToolRuntime
  #tokens: Tokens | undefined
  readonly #revoked: RevokedTokens
  /** Of the primary's instance, which keeps them for all. */
  readonly #revocations: RevocationLog | null
  /** Of the primary's instance, which derives for all. */
  #threads: HashThreads | undefined
  #sent = 0

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
    const generation = new Generation(runtime.sharedMemory('revocations', GENERATION_BYTES))
    const ask = (after: number) => runtime.callPrimary('revoked', [after]) as Promise<RevocationPage>
    this.#revoked = new RevokedTokens(generation, ask)
    const warn = (message: string) => runtime.log('WARNING', message)
    this.#revocations =
      runtime.thread.kind === 'primary' ? new RevocationLog(() => runtime.peer('state'), generation, warn) : null
  }

  boot(): void {
    this.#tokensOf()
    this.#revocations?.start()
  }

  api(): Auth {
    const { settings } = this.#runtime
    return {
      hashPassword: (password) => hashPassword(password, this.#derive),
      verifyPassword: (password, hash) => verifyPassword(password, hash, this.#derive),
      createToken: async (claims, options) =>
        this.#tokensOf().create(claims, options?.expiresInSec ?? settings.authTokenTtlSec),
      validateToken: async (token) => {
        const claims = await this.#tokensOf().verify(token)
        if (claims === null) return null
        const isRevoked = this.isRevoked(claims)
        return (typeof isRevoked === 'boolean' ? isRevoked : await isRevoked) ? null : claims
      },
      createSecret: newSecret,
      revokeToken: async (token) => {
        const claims = typeof token === 'string' ? await this.#tokensOf().verify(token) : checked(token)
        if (claims === null) return false
        await this.#runtime.callPrimary('revoke', [revocationId(claims), claims.exp + CLOCK_TOLERANCE_SEC])
        return true
      },
    }
  }

  #tokensOf(): Tokens {
    const { settings, log } = this.#runtime
    this.#tokens ??= new Tokens(settings, (message) => log('WARNING', message))
    return this.#tokens
  }

  serve(method: string, [id, sent]: readonly unknown[]): unknown {
    if (method === 'revoked') return this.#revocations!.after(id as number)
    if (method === 'revoke') return this.#revocations!.revoke(id as string, sent as number)
    const { authHashThreads, authHashQueue } = this.#runtime.settings
    this.#threads ??= new HashThreads(authHashThreads, authHashQueue)
    if (method !== 'derive') return this.#threads.abandon((each) => each === id)
    const { password, salt, ...rest } = sent as SentDerivation
    const derivation = { ...rest, password: Buffer.from(password, 'base64'), salt: Buffer.from(salt, 'base64') }
    return this.#threads.derive(id as string, derivation).then((key) => Buffer.from(key).toString('base64'))
  }

  /** Rejects with AUTH_UNAVAILABLE while that is not known. */
  isRevoked(claims: Claims): Awaitable<boolean> {
    return this.#revoked.has(claims)
  }

  threadGone(gone: number): void {
    this.#threads?.abandon((id) => id.startsWith(`${gone}:`))
  }

  stop(): Promise<void> | undefined {
    this.#revocations?.stop()
    return this.#threads?.close()
  }

  /** @throws AUTH_BUSY when too many wait, AUTH_ABANDONED when the request is over before its turn came */
  readonly #derive = async ({ password, salt, ...rest }: Derivation): Promise<Uint8Array> => {
    const signal = this.#runtime.context()?.request?.signal
    if (signal?.aborted) throw new HeddleError('AUTH_ABANDONED')
    const id = `${threadId}:${++this.#sent}`
    const abandon = (): void => void this.#runtime.callPrimary('abandon', [id]).catch(() => {})
    signal?.addEventListener('abort', abandon, { once: true })
    try {
      const sent = { ...rest, password: base64(password), salt: base64(salt) }
      return Buffer.from((await this.#runtime.callPrimary('derive', [id, sent])) as string, 'base64')
    } finally {
      signal?.removeEventListener('abort', abandon)
    }
  }
}

/** @throws AUTH_INVALID_INPUT */
function checked(claims: Pick<Claims, 'exp'>): Claims {
  if (typeof claims === 'object' && claims !== null && Number.isFinite(claims.exp)) return claims as Claims
  throw new HeddleError('AUTH_INVALID_INPUT', 'auth.revokeToken: expected a token or its claims with exp')
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
