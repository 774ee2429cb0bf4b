import { randomBytes, timingSafeEqual } from 'node:crypto'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Derivation } from './hash-threads.ts'

/** Runs scrypt, elsewhere. */
export type Derive = (derivation: Derivation) => Promise<Uint8Array>

const MAX_PASSWORD_BYTES = 1024
const SALT_BYTES = 16
const KEY_BYTES = 32

// One of the scrypt settings of the OWASP Password Storage Cheat Sheet: 32 MiB, three passes.
const COST = { N: 2 ** 15, r: 8, p: 3 }

// Largest parameters of a stored hash. A hash is data, and data must not be able to exhaust the process.
const MAX_COST = { N: 2 ** 18, r: 16, p: 16, bytes: 256 * 1024 * 1024 }

/**
 * `scrypt$N$r$p$salt$hash`, the last two in base64url. Old hashes still verify when the settings change.
 * @throws AUTH_INVALID_INPUT for a password that is not a string of 1 to 1024 bytes of UTF-8
 */
export async function hashPassword(password: string, derive: Derive): Promise<string> {
  const text = normalized(password)
  if (text === undefined) {
    throw new HeddleError('AUTH_INVALID_INPUT', `A password must be a string of 1 to ${MAX_PASSWORD_BYTES} bytes`)
  }
  const salt = randomBytes(SALT_BYTES)
  const key = Buffer.from(await derive({ password: Buffer.from(text), salt, keyBytes: KEY_BYTES, ...COST }))
  return `scrypt$${COST.N}$${COST.r}$${COST.p}$${salt.toString('base64url')}$${key.toString('base64url')}`
}

/** False for a wrong password, for a password that could not have been hashed, and for a hash that `hashPassword` did not make. */
export async function verifyPassword(password: string, hash: string, derive: Derive): Promise<boolean> {
  const text = normalized(password)
  const stored = parseHash(hash)
  if (text === undefined || stored === undefined) return false
  const { N, r, p, salt } = stored
  const key = await derive({ password: Buffer.from(text), salt, keyBytes: stored.key.length, N, r, p })
  return timingSafeEqual(key, stored.key)
}

/** The password in one Unicode normal form, because a letter may have several encodings (RFC 8265, section 4.2); undefined when it is too short or too long. */
function normalized(password: unknown): string | undefined {
  if (typeof password !== 'string' || password.length > MAX_PASSWORD_BYTES) return undefined
  const text = password.normalize('NFC')
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= MAX_PASSWORD_BYTES ? text : undefined
}

interface StoredHash {
  N: number
  r: number
  p: number
  salt: Buffer
  key: Buffer
}

function parseHash(hash: unknown): StoredHash | undefined {
  const parts =
    typeof hash === 'string' ? /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(hash) : null
  if (!parts) return undefined
  const [N, r, p] = parts.slice(1, 4).map(Number) as [number, number, number]
  const [salt, key] = parts.slice(4).map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer]
  const isPowerOfTwo = N > 1 && (N & (N - 1)) === 0
  const isAffordable = N <= MAX_COST.N && r <= MAX_COST.r && p <= MAX_COST.p && 128 * N * r <= MAX_COST.bytes
  const isSized = salt.length >= 8 && salt.length <= 64 && key.length >= 16 && key.length <= 64
  return isPowerOfTwo && r > 0 && p > 0 && isAffordable && isSized ? { N, r, p, salt, key } : undefined
}
