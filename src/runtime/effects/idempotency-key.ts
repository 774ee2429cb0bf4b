import { createHash, createHmac } from 'node:crypto'
import { HeddleError } from '../../core/errors/catalogue.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

const KEY = /^[\x21-\x7e]{1,255}$/

/** The part of a request that this needs. */
export interface KeyedInput {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Raw. */
  readonly path: string
  readonly query: string
  readonly body: Uint8Array | null
}

/** Which request a stored answer belongs to. */
export interface RequestIdentity {
  /** The route, and who asks. */
  scope: string
  /** A digest of the key. The key itself is not stored. */
  key: string
  /** What the request asks for: a digest that only who has the key can compute. The body may hold a password. */
  print: string
}

/**
 * The value of the header `idempotency-key`; null when there is none.
 * Source: draft-ietf-httpapi-idempotency-key-header. Quotes are part of the key.
 * @throws HTTP_IDEMPOTENCY_KEY when it is malformed, or missing and required
 */
export function readKey({ headers }: KeyedInput, wanted: 'optional' | 'required'): string | null {
  const key = headers['idempotency-key']
  if (key === undefined) {
    if (wanted === 'optional') return null
    throw new HeddleError('HTTP_IDEMPOTENCY_KEY', 'This route requires the header Idempotency-Key')
  }
  if (KEY.test(key)) return key
  throw new HeddleError('HTTP_IDEMPOTENCY_KEY', 'Idempotency-Key must be 1 to 255 visible ASCII characters')
}

/** @param scope the route, and who asks */
export function identify(input: KeyedInput, key: string, scope: string): RequestIdentity {
  return { scope, key: digest(key), print: printOf(input, key) }
}

function printOf({ path, query, headers, body }: KeyedInput, key: string): string {
  const hash = createHmac('sha256', key).update(toJson([path, query, headers['content-type'] ?? '']))
  if (body !== null) hash.update(body)
  return hash.digest('base64url')
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
