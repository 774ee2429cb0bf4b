// The public keys of an identity provider.
import type { FetchImplementation, JWTVerifyGetKey } from 'jose'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

/** The library, which is loaded when it is first needed. */
type Jose = Pick<typeof import('jose'), 'createRemoteJWKSet' | 'customFetch'>

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
 */
export class ProviderKeys {
  readonly get: JWTVerifyGetKey
  readonly #onFailure: (message: string) => void
  #last: { text: string; atMs: number } | null = null
  #failure: { message: string; atMs: number } | null = null

  /** @param onFailure told once for each time the provider goes away */
  constructor(jose: Jose, url: string, onFailure: (message: string) => void) {
    this.#onFailure = onFailure
    this.get = jose.createRemoteJWKSet(new URL(url), {
      cacheMaxAge: FRESH_MS,
      cooldownDuration: COOLDOWN_MS,
      timeoutDuration: TIMEOUT_MS,
      [jose.customFetch]: this.#fetch,
    })
  }

  /** @throws AUTH_UNAVAILABLE when there are no keys to check with */
  readonly #fetch: FetchImplementation = async (url, options) => {
    const nowMs = performance.now()
    if (this.#failure !== null && nowMs - this.#failure.atMs < FAILURE_PAUSE_MS)
      return this.#fallback(this.#failure.message)
    try {
      const response = await fetch(url, options)
      if (response.status !== 200) throw new Error(`it answers with ${response.status}`)
      const text = await bounded(response)
      if (!Array.isArray((JSON.parse(text) as { keys?: unknown } | null)?.keys)) throw new Error('it sends no key set')
      this.#last = { text, atMs: performance.now() }
      this.#failure = null
      return new Response(text)
    } catch (thrown) {
      const isNew = this.#failure === null
      const cause = (thrown as { cause?: unknown } | null)?.cause
      const message = `The keys of AUTH_JWKS_URL cannot be fetched: ${messageOf(cause ?? thrown)}`
      this.#failure = { message, atMs: performance.now() }
      if (isNew) this.#onFailure(message)
      return this.#fallback(message)
    }
  }

  #fallback(message: string): Response {
    if (this.#last !== null && performance.now() - this.#last.atMs < STALE_MS) return new Response(this.#last.text)
    throw new HeddleError('AUTH_UNAVAILABLE', message)
  }
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
