import { createSecretKey, type KeyObject } from 'node:crypto'
import type { Claims } from '../../contracts/auth.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

const ALGORITHM = 'HS256'
const MIN_SECRET_BYTES = 32
const MAX_TOKEN_BYTES = 8192
const MAX_TTL_SEC = 315_360_000

// Loaded with the first token, so that a thread that handles none does not hold it in memory.
let jose: Promise<typeof import('jose')> | undefined
function loadJose() {
  jose ??= import('jose')
  return jose
}

/**
 * The key of `AUTH_SECRET_KEY`.
 * @throws CONFIG_INVALID for less than 32 bytes, and for a PEM: with a public key here the secret would be public
 */
export function toKey(secret: string): KeyObject {
  const bytes = Buffer.from(secret)
  if (bytes.length < MIN_SECRET_BYTES) {
    throw new HeddleError('CONFIG_INVALID', `AUTH_SECRET_KEY: expected at least ${MIN_SECRET_BYTES} bytes`)
  }
  if (secret.includes('-----BEGIN')) {
    throw new HeddleError('CONFIG_INVALID', 'AUTH_SECRET_KEY: expected a random text, got a PEM key')
  }
  return createSecretKey(bytes)
}

/**
 * Signs claims. `iat` and `exp` are always set here, even if the claims have them, so that old claims can be signed again.
 * @throws AUTH_INVALID_INPUT for claims without a `sub`, a lifetime out of range, or a token that would be too long
 */
export async function createToken(key: KeyObject, claims: { sub: string }, expiresInSec: number): Promise<string> {
  if (typeof claims !== 'object' || claims === null) throw invalid('claims must be an object')
  if (typeof claims.sub !== 'string' || claims.sub === '') throw invalid('claims.sub must be a non-empty string')
  if (!Number.isInteger(expiresInSec) || expiresInSec < 1 || expiresInSec > MAX_TTL_SEC) {
    throw invalid(`expiresInSec must be a whole number from 1 to ${MAX_TTL_SEC}`)
  }
  const { SignJWT } = await loadJose()
  const nowSec = Math.floor(Date.now() / 1000)
  const payload = { ...claims, iat: nowSec, exp: nowSec + expiresInSec }
  const token = await sign(() => new SignJWT(payload).setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' }).sign(key))
  if (token.length > MAX_TOKEN_BYTES) throw invalid(`the token would be longer than ${MAX_TOKEN_BYTES} bytes`)
  return token
}

/** The claims of a valid, unexpired token with `sub` and `exp`; null for anything else. */
export async function validateToken(key: KeyObject, token: unknown): Promise<Claims | null> {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_BYTES || !isStrictCompactJws(token)) return null
  try {
    const { jwtVerify } = await loadJose()
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      algorithms: [ALGORITHM],
      requiredClaims: ['sub', 'exp'],
    })
    // Our tokens do not have it, and this code does not implement it.
    if (protectedHeader.crit !== undefined) return null
    return typeof payload.sub === 'string' && payload.sub !== '' ? (payload as Claims) : null
  } catch {
    // Whatever the error is, the token is not valid. The caller needs no reason, and a client must not learn it.
    return null
  }
}

/** True for three parts of canonical base64url. jose's decoder also accepts padding, blanks and unused last bits. */
function isStrictCompactJws(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part) => part !== '' && isCanonical(part))
}

function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

async function sign(work: () => Promise<string>): Promise<string> {
  try {
    return await work()
  } catch (error) {
    throw new HeddleError('AUTH_INVALID_INPUT', `The claims cannot be signed: ${messageOf(error)}`, { cause: error })
  }
}

function invalid(fault: string): HeddleError {
  return new HeddleError('AUTH_INVALID_INPUT', `auth.createToken: ${fault}`)
}
