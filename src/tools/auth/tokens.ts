// Signs and checks tokens, by the keys of this service and those of an identity provider.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { FetchImplementation, JWTVerifyGetKey, JWTVerifyOptions } from 'jose'
import type { Claims } from '../../contracts/auth.ts'
import { namedSecrets } from '../../core/config/checks.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { causeOf, codeOf, isInstance, messageOf, readable } from '../../core/errors/description.ts'

const MIN_SECRET_BYTES = 32

interface SigningKey {
  /** Its name in the header of a token; undefined for the key of `AUTH_SECRET_KEY`. */
  readonly kid: string | undefined
  readonly key: KeyObject
}

/** The secrets of this service: the first of `AUTH_SECRET_KEYS` signs, or else `AUTH_SECRET_KEY`; all are accepted. */
class SigningKeys {
  readonly first: SigningKey
  /** Set when there is no other: nothing in a token has to be looked at to find it. */
  readonly only: KeyObject | null
  readonly #all: readonly SigningKey[]

  /** @throws CONFIG_INVALID for a secret of less than 32 bytes, and for a PEM: with a public key here the secret would be public */
  constructor({ authSecretKey, authSecretKeys }: Pick<Settings, 'authSecretKey' | 'authSecretKeys'>) {
    const named = namedSecrets(authSecretKeys).map(([kid, secret]) => ({ kid, key: toKey(secret, 'AUTH_SECRET_KEYS') }))
    const unnamed: SigningKey[] =
      authSecretKey === undefined ? [] : [{ kid: undefined, key: toKey(authSecretKey, 'AUTH_SECRET_KEY') }]
    this.#all = [...named, ...unnamed]
    const [first] = this.#all
    if (first === undefined) throw new HeddleError('CONFIG_MISSING', 'AUTH_SECRET_KEY: expected a secret, got none')
    this.first = first
    this.only = this.#all.length === 1 && first.kid === undefined ? first.key : null
  }

  /**
   * The keys that may have signed a token. One that names a known key can be by that one alone; one that names none may be of any, as
   * those are that were signed before keys had names; one that names another is by the key without a name, or by none.
   */
  candidates(kid: unknown): readonly SigningKey[] {
    if (kid === undefined) return this.#all
    const named = this.#all.filter((each) => each.kid === kid)
    return named.length > 0 ? named : this.#all.filter((each) => each.kid === undefined)
  }
}

function toKey(secret: string, variable: string): KeyObject {
  const bytes = Buffer.from(secret)
  if (bytes.length < MIN_SECRET_BYTES)
    throw new HeddleError('CONFIG_INVALID', `${variable}: expected at least ${MIN_SECRET_BYTES} bytes`)
  if (secret.includes('-----BEGIN'))
    throw new HeddleError('CONFIG_INVALID', `${variable}: expected a random text, got a PEM key`)
  return createSecretKey(bytes)
}

const ALGORITHM = 'HS256'
/** Of an identity provider: public-key signatures only (RFC 7518, RFC 8037, RFC 9864). jose takes a key for an algorithm that fits its type, curve and `alg`. */
const PROVIDER_ALGORITHMS = [
  'EdDSA',
  'Ed25519',
  ...['ES', 'PS', 'RS'].flatMap((kind) => [256, 384, 512].map((bits) => kind + bits)),
]
/** Maximum number of a provider's keys that are tried for a token which names none. */
const MAX_TRIED_KEYS = 16
/** How far the clock of an identity provider may be off. */
export const CLOCK_TOLERANCE_SEC = 5
const TOKEN_ID_BYTES = 12
const MAX_TOKEN_BYTES = 8192
const MAX_TTL_SEC = 315_360_000

// Loaded with the first token, so that a thread that handles none does not hold it in memory.
let jose: Promise<typeof import('jose')> | undefined
function loadJose() {
  jose ??= import('jose')
  return jose
}

/** Signs tokens with the service's own secrets, and checks those and an identity provider's. */
export class Tokens {
  readonly #settings: Settings
  readonly #keys: SigningKeys
  readonly #ownRules: JWTVerifyOptions
  readonly #providerRules: JWTVerifyOptions
  readonly #onProviderFailure: (message: string) => void
  #providerKeys: ProviderKeys | undefined

  /** @throws CONFIG_INVALID, CONFIG_MISSING for secrets that are none */
  constructor(settings: Settings, onProviderFailure: (message: string) => void) {
    this.#settings = settings
    this.#keys = new SigningKeys(settings)
    this.#onProviderFailure = onProviderFailure
    const { authIssuer, authAudience, authJwksIssuer } = settings
    const all: JWTVerifyOptions = { requiredClaims: ['sub', 'exp'] }
    if (authAudience !== undefined) all.audience = authAudience
    this.#ownRules = { ...all, algorithms: [ALGORITHM] }
    if (authIssuer !== undefined) this.#ownRules.issuer = authIssuer
    this.#providerRules = { ...all, algorithms: PROVIDER_ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_SEC }
    if (authJwksIssuer !== undefined) this.#providerRules.issuer = authJwksIssuer
  }

  /**
   * Signs claims. `iat`, `exp` and `jti` are always set here, even if the claims have them, so that old claims can be signed again; so are `iss`
   * and `aud` when there are settings for them.
   * @throws AUTH_INVALID_INPUT for claims without a `sub`, a lifetime out of range, or a token that would be too long
   */
  async create(claims: { sub: string }, expiresInSec: number): Promise<string> {
    if (typeof claims !== 'object' || claims === null) throw invalid('claims must be an object')
    if (typeof claims.sub !== 'string' || claims.sub === '') throw invalid('claims.sub must be a non-empty string')
    if (!Number.isInteger(expiresInSec) || expiresInSec < 1 || expiresInSec > MAX_TTL_SEC) {
      throw invalid(`expiresInSec must be a whole number from 1 to ${MAX_TTL_SEC}`)
    }
    const { SignJWT } = await loadJose()
    const nowSec = Math.floor(Date.now() / 1000)
    const { authIssuer, authAudience } = this.#settings
    const payload: Record<string, unknown> = { ...claims, iat: nowSec, exp: nowSec + expiresInSec, jti: newTokenId() }
    if (authIssuer !== undefined) payload.iss = authIssuer
    if (authAudience !== undefined) payload.aud = authAudience
    const { kid, key } = this.#keys.first
    const header = kid === undefined ? { alg: ALGORITHM, typ: 'JWT' } : { alg: ALGORITHM, typ: 'JWT', kid }
    const token = await sign(() => new SignJWT(payload).setProtectedHeader(header).sign(key))
    if (token.length > MAX_TOKEN_BYTES) throw invalid(`the token would be longer than ${MAX_TOKEN_BYTES} bytes`)
    return token
  }

  /**
   * The claims of a valid, unexpired token with `sub` and `exp`; null for anything else.
   * @throws AUTH_UNAVAILABLE when an identity provider's keys cannot be had
   */
  async verify(token: unknown): Promise<Claims | null> {
    if (typeof token !== 'string' || token.length > MAX_TOKEN_BYTES || !isStrictCompactJws(token)) return null
    const { decodeProtectedHeader } = await loadJose()
    const { only } = this.#keys
    if (only !== null && this.#settings.authJwksUrl === undefined) return this.#verified(token, only, this.#ownRules)
    const header = readable(() => decodeProtectedHeader(token))
    if (header === undefined) return null
    if (header.alg !== ALGORITHM) return this.#verifyByProvider(token, header.kid === undefined)
    for (const { key } of this.#keys.candidates(header.kid)) {
      const claims = await this.#verified(token, key, this.#ownRules)
      if (claims !== null) return claims
    }
    return null
  }

  /** @param isUnnamed it names no key: that of a provider that has changed its keys is not seen to be missing */
  async #verifyByProvider(token: string, isUnnamed: boolean): Promise<Claims | null> {
    const { authJwksUrl } = this.#settings
    if (authJwksUrl === undefined) return null
    this.#providerKeys ??= providerKeys(await loadJose(), authJwksUrl, this.#onProviderFailure)
    const keys = this.#providerKeys
    const claims = await this.#verified(token, keys, this.#providerRules)
    if (claims !== null || !isUnnamed || keys.coolingDown) return claims
    await keys.reload()
    return this.#verified(token, keys, this.#providerRules)
  }

  async #verified(
    token: string,
    key: Parameters<typeof import('jose').jwtVerify>[1] | JWTVerifyGetKey,
    rules: JWTVerifyOptions,
  ): Promise<Claims | null> {
    const { jwtVerify } = await loadJose()
    try {
      // One signature for both kinds of keys, which the types of jose tell apart.
      const { payload, protectedHeader } = await jwtVerify(token, key as JWTVerifyGetKey, rules)
      // Our tokens do not have it, and this code does not implement it.
      if (protectedHeader.crit !== undefined) return null
      return typeof payload.sub === 'string' && payload.sub !== '' ? (payload as Claims) : null
    } catch (thrown) {
      // Nothing is wrong with the token: it cannot be checked.
      if (isInstance(thrown, HeddleError)) throw thrown
      if (codeOf(thrown) === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') {
        return this.#verifiedByOneOf(thrown as AsyncIterable<KeyObject>, token, rules)
      }
      // Whatever the error is, the token is not valid. The caller needs no reason, and a client must not learn it.
      return null
    }
  }

  /** The token names no key, or several have the name. */
  async #verifiedByOneOf(
    keys: AsyncIterable<KeyObject>,
    token: string,
    rules: JWTVerifyOptions,
  ): Promise<Claims | null> {
    let tried = 0
    for await (const key of keys) {
      const claims = await this.#verified(token, key, rules)
      if (claims !== null || ++tried === MAX_TRIED_KEYS) return claims
    }
    return null
  }
}

/** Short, since each request carries it. */
function newTokenId(): string {
  return randomBytes(TOKEN_ID_BYTES).toString('base64url')
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

/** The library, which is loaded when it is first needed. */
type Jose = Pick<typeof import('jose'), 'createRemoteJWKSet' | 'customFetch'>

type ProviderKeys = ReturnType<Jose['createRemoteJWKSet']>

/** Keys are fetched again after this time. Milliseconds. */
const FRESH_MS = 600_000
/** A token by an unknown key makes them be fetched again, but not more often than so. Milliseconds. */
const COOLDOWN_MS = 30_000
/** After a failure the provider is left alone for so long. Milliseconds. */
const FAILURE_PAUSE_MS = 5000
/** While the provider does not answer, its last keys stay good for so long. Milliseconds. */
const STALE_MS = 3_600_000
const TIMEOUT_MS = 5000
const MAX_BYTES = 1 << 20

/**
 * The public keys of an identity provider (JWKS, RFC 7517). jose fetches and picks them; here is what it lacks: a bound of the answer,
 * a pause after a failure, and the last keys while the provider is away.
 * @param onFailure told once for each time the provider goes away
 */
function providerKeys(jose: Jose, url: string, onFailure: (message: string) => void): ProviderKeys {
  let last: { text: string; atMs: number } | null = null
  let failure: { message: string; atMs: number } | null = null

  const fallback = (message: string): Response => {
    if (last !== null && performance.now() - last.atMs < STALE_MS) return new Response(last.text)
    throw new HeddleError('AUTH_UNAVAILABLE', message)
  }

  /** @throws AUTH_UNAVAILABLE when there are no keys to check with */
  const fetchKeys: FetchImplementation = async (url, options) => {
    if (failure !== null && performance.now() - failure.atMs < FAILURE_PAUSE_MS) return fallback(failure.message)
    try {
      const response = await fetch(url, options)
      if (response.status !== 200) throw new Error(`it answers with ${response.status}`)
      const text = await bounded(response)
      if (!Array.isArray((JSON.parse(text) as { keys?: unknown } | null)?.keys)) throw new Error('it sends no key set')
      last = { text, atMs: performance.now() }
      failure = null
      return new Response(text)
    } catch (thrown) {
      const isNew = failure === null
      const message = `The keys of AUTH_JWKS_URL cannot be fetched: ${messageOf(causeOf(thrown) ?? thrown)}`
      failure = { message, atMs: performance.now() }
      if (isNew) onFailure(message)
      return fallback(message)
    }
  }

  return jose.createRemoteJWKSet(new URL(url), {
    cacheMaxAge: FRESH_MS,
    cooldownDuration: COOLDOWN_MS,
    timeoutDuration: TIMEOUT_MS,
    [jose.customFetch]: fetchKeys,
  })
}

async function bounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength
    if (bytes > MAX_BYTES) throw new Error(`its answer has more than ${MAX_BYTES} bytes`)
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks).toString()
}
