/** Claims of a valid token; `sub` is the subject's id. Tokens from `createToken` always have `iat`; a token that another service signed with the same key may lack it. */
export interface Claims {
  sub: string
  iat?: number
  exp: number
  [claim: string]: unknown
}

/** Passwords (scrypt) and tokens (JWT, HS256). */
export interface Auth {
  /**
   * A self-describing scrypt hash with its salt.
   * @throws AUTH_BUSY (503) at once when `AUTH_HASH_QUEUE` passwords wait already; AUTH_ABANDONED when the request is over before its turn comes
   */
  hashPassword(password: string): Promise<string>
  /**
   * False for a wrong password, and for a hash that `hashPassword` did not make.
   * @throws AUTH_BUSY, AUTH_ABANDONED, as `hashPassword`
   */
  verifyPassword(password: string, hash: string): Promise<boolean>
  /**
   * Signs claims with `AUTH_SECRET_KEY`.
   * @param claims must hold a non-empty string `sub`
   * @param options `expiresInSec`: default `AUTH_TOKEN_TTL_SEC`
   */
  createToken(claims: { sub: string; [claim: string]: unknown }, options?: { expiresInSec?: number }): Promise<string>
  /** The claims; null unless the token is valid, not expired and signed with `AUTH_SECRET_KEY`. Never throws. */
  validateToken(token: string): Promise<Claims | null>
}
