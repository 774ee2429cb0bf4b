// Values without their secrets.
import { randomBytes } from 'node:crypto'
import type { StandardSchemaV1 } from '../../contracts/common.ts'
import type { JsonSchema } from '../../contracts/registry.ts'
import { readable } from '../errors/description.ts'
import { atPointer, jsonSchemaOf, type SchemaUse } from './json-schema.ts'
import { isPlainObject } from './standard-schema.ts'

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
export const withoutSecretStrings = (text: string): string =>
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

/** Names of secrets, without case, blanks, `_`, `-` and `.`: parts of a name, whole ones, and words of one. */
const PARTS =
  /passwor[dt]|passwd|passphrase|passcode|pincode|secret|token|authorization|apikey|accesskey|privatekey|credential|cookie|cardnumber|creditcard|securitycode|sessionid/
const WHOLE = new Set('auth bearer card key pan pass session signature'.split(' '))
const WORDS = new Set('cvc cvv iban jwt otp pin pwd ssn'.split(' '))
/** `name=value`, `name: value` and `"name":"value"` in a text: a form, a configuration, JSON that is cut off. */
const PAIR = /(?<![\w.-])(["']?)([A-Za-z][\w.-]{1,60})\1(\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s&,;"'{}[\]]+)/g
/** Credentials of a header, as a whole value: these need not look like one. */
const CREDENTIALS = /^(?:Bearer|Basic) /
/** Levels of a value. */
const DEPTH_MAX = 64

export function isSecretName(name: string): boolean {
  const bare = name.toLowerCase().replace(/[\s_.-]/g, '')
  if (WHOLE.has(bare) || WORDS.has(bare) || PARTS.test(bare)) return true
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase()
  return words.split(/[\s_.-]+/).some((word) => WORDS.has(word))
}

/** True for a text that is a secret whatever its name. */
export const isSecretText = (value: unknown): boolean =>
  typeof value === 'string' && (CREDENTIALS.test(value) || withoutSecretStrings(value) === SECRET)

/**
 * What a schema says of its fields, for `withoutSecrets`; null where it can say nothing, as where there is none; undefined where it may say
 * something that cannot be read: what it is for must not be shown then.
 */
export function marksOf(schema: StandardSchemaV1 | undefined, use: SchemaUse): JsonSchema | null | undefined {
  if (schema === undefined) return null
  const standard = schema['~standard'] as { jsonSchema?: { input?: unknown } }
  if (typeof standard.jsonSchema?.input !== 'function') return null
  let marks = known.get(schema)
  if (marks === undefined && !known.has(schema)) {
    const converted = jsonSchemaOf(schema, use)
    // All that is left of a schema that cannot be converted.
    marks = /^Checked by a schema /.test(String(converted.description)) ? undefined : converted
    known.set(schema, marks)
  }
  return marks
}

const known = new WeakMap<StandardSchemaV1, JsonSchema | undefined>()

/**
 * A value of JSON without its secrets: what a schema marks by `secret: true`, `writeOnly: true` or `format: 'password'`, and what has the
 * name or the look of a secret.
 * @param marks what the schema says; null: there is none
 * @param found the secrets that were found so far, which are secrets under any name; those of this value are added
 */
export function withoutSecrets(value: unknown, marks: JsonSchema | null, found = new KnownSecrets()): unknown {
  const root = marks ?? {}
  return new Stripping(root, found).of(value, expanded([root], root), 0)
}

/** A text without its secrets, as `withoutSecrets`: it may be JSON, a form, or lines with names. @param found as there */
export function withoutSecretsInText(text: string, marks: JsonSchema | null, found: KnownSecrets): string {
  const root = marks ?? {}
  return new Stripping(root, found).text(text, expanded([root], root), 0)
}

class Stripping {
  readonly #root: JsonSchema
  readonly #found: KnownSecrets

  constructor(root: JsonSchema, found: KnownSecrets) {
    this.#root = root
    this.#found = found
  }

  of(value: unknown, schemas: readonly JsonSchema[], depth: number): unknown {
    // Whether there is one may be seen.
    if (value === null || value === undefined) return value
    if (schemas.some(isMarked) || isSecretText(value) || depth > DEPTH_MAX) return this.#secret(value)
    if (Array.isArray(value)) {
      return value.map((item, index) => {
        const parts = schemas.flatMap(({ items, prefixItems }) => [
          items,
          Array.isArray(prefixItems) ? prefixItems[index] : null,
        ])
        return this.of(item, expanded(parts, this.#root), depth + 1)
      })
    }
    if (!isPlainObject(value)) {
      if (this.#found.has(value)) return SECRET
      return typeof value === 'string' ? this.text(value, schemas, depth) : value
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => {
        if (isSecretName(name)) return [name, this.#secret(field)]
        const parts = schemas.map(({ properties, additionalProperties }) =>
          isPlainObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties,
        )
        return [name, this.of(field, expanded(parts, this.#root), depth + 1)]
      }),
    )
  }

  text(text: string, schemas: readonly JsonSchema[], depth: number): string {
    const value: unknown = /^\s*[{[]/.test(text) ? readable(() => JSON.parse(text)) : undefined
    if (value !== undefined) {
      const before = JSON.stringify(value)
      const shown = JSON.stringify(this.of(value, schemas, depth + 1))
      return shown === before ? text : shown
    }
    const shown = text.replace(PAIR, (pair, quote: string, name: string, between: string, given: string) => {
      if (!isSecretName(name)) return pair
      this.#secret(bare(given))
      return `${quote}${name}${quote}${between}${SECRET}`
    })
    return this.#found.hideIn(shown)
  }

  #secret(value: unknown): unknown {
    if (value === null) return value
    if (isPlainObject(value) || Array.isArray(value)) for (const part of Object.values(value)) this.#secret(part)
    else this.#found.add(value)
    return SECRET
  }
}

/** A value without its quotes, as a form has it: also that of a URL. */
function bare(value: string): string {
  const text = value.replace(/^(["'])(.*?)\1?$/s, '$2')
  return readable(() => decodeURIComponent(text.replaceAll('+', ' '))) ?? text
}

const isMarked = ({ secret, writeOnly, format }: JsonSchema): boolean =>
  secret === true || writeOnly === true || format === 'password'

/** Some schemas with those that they refer to or are composed of. */
function expanded(parts: readonly unknown[], root: JsonSchema): JsonSchema[] {
  const found: JsonSchema[] = []
  const seen = new Set<unknown>()
  const add = (part: unknown): void => {
    if (!isPlainObject(part) || seen.has(part)) return
    seen.add(part)
    found.push(part)
    if (typeof part.$ref === 'string') add(atPointer(root, part.$ref))
    for (const parts of [part.anyOf, part.oneOf, part.allOf]) if (Array.isArray(parts)) parts.forEach(add)
  }
  parts.forEach(add)
  return found
}
