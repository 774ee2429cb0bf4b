import { createSecretKey, type KeyObject } from 'node:crypto'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'

const MIN_SECRET_BYTES = 32

export interface SigningKey {
  /** Its name in the header of a token; undefined for the key of `AUTH_SECRET_KEY`. */
  readonly kid: string | undefined
  readonly key: KeyObject
}

/** The secrets of this service: the first of `AUTH_SECRET_KEYS` signs, or else `AUTH_SECRET_KEY`; all are accepted. */
export class SigningKeys {
  readonly first: SigningKey
  /** Set when there is no other: nothing in a token has to be looked at to find it. */
  readonly only: KeyObject | null
  readonly #all: readonly SigningKey[]

  /** @throws CONFIG_INVALID for a secret of less than 32 bytes, and for a PEM: with a public key here the secret would be public */
  constructor({ authSecretKey, authSecretKeys }: Pick<Settings, 'authSecretKey' | 'authSecretKeys'>) {
    const named = (authSecretKeys ?? '').split(',').flatMap((entry): SigningKey[] => {
      const text = entry.trim()
      const colon = text.indexOf(':')
      return colon < 0 ? [] : [{ kid: text.slice(0, colon), key: toKey(text.slice(colon + 1), 'AUTH_SECRET_KEYS') }]
    })
    const unnamed =
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
