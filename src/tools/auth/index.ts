import type { KeyObject } from 'node:crypto'
import type { Auth } from '../../contracts/auth.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { hashPassword, verifyPassword } from './password.ts'
import { createToken, toKey, validateToken } from './token.ts'

/** Passwords with scrypt, on Node's thread pool; tokens with HS256. Nothing is stored, so any replica validates any token. */
export default class AuthTool implements Tool {
  readonly name = 'auth'
  #runtime: ToolRuntime
  #key: KeyObject | undefined

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
      hashPassword,
      verifyPassword,
      createToken: async (claims, options) =>
        createToken(key(), claims, options?.expiresInSec ?? settings.authTokenTtlSec),
      validateToken: async (token) => validateToken(key(), token),
    }
  }
}
