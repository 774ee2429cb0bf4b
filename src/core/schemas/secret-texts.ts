import { randomBytes } from 'node:crypto'

/** Stands where a secret stood. */
export const SECRET = '[secret]'

/** By it whoever records a text knows a secret that heddle has made, in whatever thread, process or replica, and nobody has to be told of it. */
const PREFIX = 'hds_'
/** 232 bits: 39 characters in base64url. */
const RANDOM_BYTES = 29

/** A random text of 43 characters that nobody can guess, and that is left out of whatever is recorded. */
export const newSecret = (): string => PREFIX + randomBytes(RANDOM_BYTES).toString('base64url')

/**
 * Texts that are secrets wherever they stand: what `newSecret` makes; hashes of passwords, those of `auth` and others; JSON Web Tokens, signed and
 * encrypted; credentials of a header or a URL. What follows the part by which one is known may have been cut off.
 */
const SECRETS = new RegExp(
  [
    `${PREFIX}[\\w-]+`,
    'scrypt(?:\\$|%(?:25)*24)\\d+(?:\\$|%(?:25)*24)[\\w$%-]+',
    '\\$(?:argon2|scrypt|pbkdf2)[\\w$.,=/+-]*',
    '\\$2[abxy]?\\$\\d\\d\\$[\\w./]*',
    // Its head is short: a text of many beginnings would be read as often.
    'eyJ[\\w-]{4,400}\\.(?:eyJ[\\w-]*(?:\\.[\\w-]*)?|[\\w-]*(?:\\.[\\w-]+){3})',
    // A text may say "Bearer authentication": a credential is no word.
    // The user and the password of a URL.
    ':\\/\\/[^\\s:/@?#"\\\\]*:[^\\s/@?#"\\\\]+@',
    '\\b(?:Bearer|Basic) (?=[\\w.~+/=-]*(?:\\d|[a-z][A-Z]))[\\w.~+/=-]{8,}',
  ].join('|'),
  'g',
)

/** A text, or JSON, without the secrets that are known by their look. It is the same text where there are none. */
export const withoutSecretTexts = (text: string): string =>
  text.replace(SECRETS, (found) => (found.startsWith(':') ? `://${SECRET}@` : SECRET))

/** Characters of a secret that is looked for under other names, and inside of other texts: short ones are found by chance. */
const FOUND_MIN = 4
const INSIDE_MIN = 6
/** Of one piece of work, so many are looked for in texts. */
const INSIDE_MAX = 100

/** The secrets that were found in one piece of work: they are secrets under any name, and within any text. */
export class KnownSecrets {
  readonly #values = new Set<unknown>()
  #inside: string[] = []

  add(value: unknown): void {
    const { length } = String(value)
    if (length < FOUND_MIN || this.#values.has(value)) return
    this.#values.add(value)
    // A longer one may hold a shorter one.
    if (typeof value === 'string' && length >= INSIDE_MIN && this.#inside.length < INSIDE_MAX)
      this.#inside = [...this.#inside, value].sort((one, other) => other.length - one.length)
  }

  get size(): number {
    return this.#values.size
  }

  has(value: unknown): boolean {
    return this.#values.has(value)
  }

  /** A text without those that stand in it. */
  hideIn(text: string): string {
    return this.#inside.reduce((shown, secret) => shown.replaceAll(secret, SECRET), text)
  }
}
