// Cookies of a request: read, signed and verified.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { namedSecrets } from '../../core/config/checks.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { readable } from '../../core/errors/description.ts'
import { isToken, withoutBlanks } from '../../core/http/http-error.ts'

/** The cookies in which this thread looks for sessions. `new Sessions` adds its own. */
export const sessionCookies = new Set<string>()

/** Only a host itself can set a cookie of such a name, and one at a time: another one was made to look like it. */
const OF_THIS_HOST = /^__Host-/i

/**
 * The cookies of a request by name, without those whose name is no token. Of a name that comes twice, the first, as it is of the closest
 * path; none where the name says that there is one. Source: RFC 6265, sections 4.1.1 and 5.4; draft-ietf-httpbis-rfc6265bis, section 4.1.3.
 */
export function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  const cookies: Record<string, string> = Object.create(null)
  if (header === undefined) return cookies
  const twice: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0) continue
    const name = withoutBlanks(pair.slice(0, equals))
    if (!isToken(name)) continue
    if (name in cookies) {
      if (OF_THIS_HOST.test(name)) twice.push(name)
      continue
    }
    const raw = withoutBlanks(pair.slice(equals + 1))
    cookies[name] = decoded(raw.startsWith('"') && raw.endsWith('"') && raw.length > 1 ? raw.slice(1, -1) : raw)
  }
  for (const name of twice) delete cookies[name]
  return cookies
}

/** `setCookie` encodes what a cookie cannot hold. What somebody else has written may be anything. */
const decoded = (text: string): string =>
  text.includes('%') ? (readable(() => decodeURIComponent(text)) ?? text) : text

/** Keeps what is signed here apart from tokens, which the same secrets sign. */
const PURPOSE = 'heddle signed cookie 1'
/** HMAC-SHA256 in base64url. */
const SIGNATURE_CHARS = 43

/** The keys that sign cookies: one of each secret of the service, the first of which signs. All are accepted, so that secrets can be changed. */
export class CookieKeys {
  readonly #keys: readonly Buffer[]

  constructor({ authSecretKey, authSecretKeys }: Pick<Settings, 'authSecretKey' | 'authSecretKeys'>) {
    const named = namedSecrets(authSecretKeys).map(([, secret]) => secret)
    const secrets = authSecretKey === undefined ? named : [...named, authSecretKey]
    this.#keys = secrets.map((secret) => createHmac('sha256', secret).update(PURPOSE).digest())
  }

  /** The value with its signature, which holds for this name alone. @throws CONFIG_MISSING without a secret */
  sign(name: string, value: string): string {
    const [key] = this.#keys
    if (key === undefined) throw new HeddleError('CONFIG_MISSING', 'AUTH_SECRET_KEY: expected a secret, got none')
    return `${value}.${signature(key, name, value).toString('base64url')}`
  }

  /** The value without its signature; null for a signature that is not of these keys. */
  verify(name: string, signed: string): string | null {
    const dot = signed.length - SIGNATURE_CHARS - 1
    if (dot < 0 || signed[dot] !== '.') return null
    const value = signed.slice(0, dot)
    const given = Buffer.from(signed.slice(dot + 1), 'base64url')
    for (const key of this.#keys) {
      const expected = signature(key, name, value)
      if (given.byteLength === expected.byteLength && timingSafeEqual(given, expected)) return value
    }
    return null
  }
}

const signature = (key: Buffer, name: string, value: string): Buffer =>
  createHmac('sha256', key).update(`${name}=${value}`).digest()

let threadKeys: CookieKeys | null = null
let threadSettings: Pick<Settings, 'authSecretKey' | 'authSecretKeys'> | null = null

/** The thread's secrets. Told once, before anything is served. */
export function useCookieSecrets(settings: Pick<Settings, 'authSecretKey' | 'authSecretKeys'>): void {
  threadSettings = settings
  threadKeys = null
}

/** Made at the first signed cookie: most services have none. */
export function cookieKeys(): CookieKeys {
  threadKeys ??= new CookieKeys(threadSettings ?? { authSecretKey: undefined, authSecretKeys: undefined })
  return threadKeys
}
