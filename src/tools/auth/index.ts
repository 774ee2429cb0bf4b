import type { KeyObject } from 'node:crypto'
import { threadId } from 'node:worker_threads'
import type { Auth } from '../../contracts/auth.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { type Derivation, HashThreads } from './hash-threads.ts'
import { hashPassword, verifyPassword } from './password.ts'
import { createToken, toKey, validateToken } from './token.ts'

/** A derivation on its way to the primary: bytes in base64. */
type SentDerivation = Omit<Derivation, 'password' | 'salt'> & { password: string; salt: string }

/** Passwords with scrypt, on threads of their own, one set for the process; tokens with HS256. Nothing is stored, so any replica validates any token. */
export default class AuthTool implements Tool {
  readonly name = 'auth'
  #runtime: ToolRuntime
  #key: KeyObject | undefined
  /** Of the primary's instance, which derives for all. */
  #threads: HashThreads | undefined
  #sent = 0

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  boot(): void {
    this.#key = toKey(this.#runtime.settings.authSecretKey)
  }

  api(): Auth {
    const { settings } = this.#runtime
    const key = () => {
      this.#key ??= toKey(settings.authSecretKey)
      return this.#key
    }
    return {
      hashPassword: (password) => hashPassword(password, this.#derive),
      verifyPassword: (password, hash) => verifyPassword(password, hash, this.#derive),
      createToken: async (claims, options) =>
        createToken(key(), claims, options?.expiresInSec ?? settings.authTokenTtlSec),
      validateToken: async (token) => validateToken(key(), token),
    }
  }

  serve(method: string, [id, sent]: readonly unknown[]): unknown {
    const { authHashThreads, authHashQueue } = this.#runtime.settings
    this.#threads ??= new HashThreads(authHashThreads, authHashQueue)
    if (method !== 'derive') return this.#threads.abandon((each) => each === id)
    const { password, salt, ...rest } = sent as SentDerivation
    const derivation = { ...rest, password: Buffer.from(password, 'base64'), salt: Buffer.from(salt, 'base64') }
    return this.#threads.derive(id as string, derivation).then((key) => Buffer.from(key).toString('base64'))
  }

  threadGone(gone: number): void {
    this.#threads?.abandon((id) => id.startsWith(`${gone}:`))
  }

  stop(): Promise<void> | undefined {
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

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
