/** Claims of a valid token; `sub` is the subject's id. Tokens from `createToken` always have `iat`; a token that another service signed with the same key may lack it. */
export interface Claims {
  sub: string
  iat?: number
  exp: number
  /** The token's id: `createToken` always makes one. */
  jti?: string
  /** Who issued it. An identity provider's subjects are not those of this service: see here which it is. */
  iss?: string
  aud?: string | string[]
  [claim: string]: unknown
}

/** Passwords (scrypt) and tokens (JWT: HS256, and those of an identity provider). */
export interface Auth {
  /**
   * A self-describing scrypt hash with its salt.
   * @throws AUTH_BUSY (503) when it would wait more than 5 s for its turn; AUTH_ABANDONED when the request is over before its turn comes
   */
  hashPassword(password: string): Promise<string>
  /**
   * False for a wrong password, and for a hash that `hashPassword` did not make.
   * @throws AUTH_BUSY, AUTH_ABANDONED, as `hashPassword`
   */
  verifyPassword(password: string, hash: string): Promise<boolean>
  /**
   * Signs claims with the first of `AUTH_SECRET_KEYS`, or `AUTH_SECRET_KEY`. Sets `iat`, `exp` and `jti`.
   * @param claims must hold a non-empty string `sub`
   * @param options `expiresInSec`: default `AUTH_TOKEN_TTL_SEC`
   */
  createToken(claims: { sub: string; [claim: string]: unknown }, options?: { expiresInSec?: number }): Promise<string>
  /**
   * The claims; null unless the token is valid, not expired, not revoked, and signed with a key of this service or of the provider at `AUTH_JWKS_URL`.
   * Never throws for what is wrong with the token.
   * @throws AUTH_UNAVAILABLE (503) when it cannot be checked: the provider's keys, or at the start the revoked tokens, cannot be had
   */
  validateToken(token: string): Promise<Claims | null>
  /**
   * A random text of 43 characters (A-Z, a-z, 0-9, _ and -) that nobody can guess, for what is given to somebody once: a refresh token, a link to
   * reset a password, an API key. It begins with `hds_`, by which logs and the history know it and leave it out. Store its hash.
   */
  createSecret(): string
  /**
   * Refuses a token from now on, in all threads of this process; within a second or so on all replicas that share `state`. It is kept there until the
   * token expires.
   * @param token a token, or the claims of one (`data._auth`, or `{ jti, exp }` and its `iss` if it has one)
   * @returns false for a token that is not valid anyway
   * @throws AUTH_INVALID_INPUT, AUTH_REVOCATIONS_FULL (503), and what `state` throws
   */
  revokeToken(token: string | (Pick<Claims, 'exp'> & Partial<Claims>)): Promise<boolean>
}
