import { HeddleError } from '../../core/errors/catalogue.ts'

/** Most bytes of keys and values together, estimated: the default of STATE_MAX_BYTES. */
export const STATE_MAX_BYTES = 256 * 1024 * 1024
/** What one plugin may take of them: others find room, whatever it does. */
const PLUGIN_SHARE = 1 / 2
/** What one namespace may take of them. More than a plugin may: one plugin does not fill a namespace that others use. */
const NAMESPACE_SHARE = 3 / 4
/** Keys of one namespace: a call of `keys` lists them all. */
export const NAMESPACE_MAX_KEYS = 500_000

/** Who takes the room of an entry. */
export interface Taker {
  readonly namespace: string
  /** The plugin that has set it. */
  readonly owner: string
}

interface Use {
  bytes: number
  keys: number
}

/** What the entries take: all together, by namespace, and by plugin. */
export class Quotas {
  readonly #maxBytes: number
  #bytes = 0
  readonly #namespaces = new Map<string, Use>()
  readonly #owners = new Map<string, Use>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Asks for room, and takes none.
   * @param bytes more than before, for the entry of this key
   * @param ownBytes more than before, of the plugin: the entry may have been another's
   * @throws STATE_FULL, STATE_QUOTA
   */
  check({ namespace, owner }: Taker, bytes: number, ownBytes: number, isNewKey: boolean): void {
    const inNamespace = this.#namespaces.get(namespace)
    const ofOwner = this.#owners.get(owner)
    if (ownBytes > 0 && (ofOwner?.bytes ?? 0) + ownBytes > this.#maxBytes * PLUGIN_SHARE)
      throw quotaFault(`The plugin ${owner} has its share of the in-memory state`, this.#maxBytes * PLUGIN_SHARE)
    if (bytes > 0 && (inNamespace?.bytes ?? 0) + bytes > this.#maxBytes * NAMESPACE_SHARE)
      throw quotaFault(
        `The namespace ${namespace} has its share of the in-memory state`,
        this.#maxBytes * NAMESPACE_SHARE,
      )
    if (isNewKey && (inNamespace?.keys ?? 0) >= NAMESPACE_MAX_KEYS)
      throw new HeddleError(
        'STATE_QUOTA',
        `The namespace ${namespace} has ${NAMESPACE_MAX_KEYS} keys; delete keys or give them a ttlMs`,
      )
    if (bytes > 0 && this.#bytes + bytes > this.#maxBytes)
      throw new HeddleError(
        'STATE_FULL',
        `The in-memory state holds ${this.#maxBytes} bytes (STATE_MAX_BYTES); delete keys or give them a ttlMs`,
      )
  }

  /** @param bytes and @param keys negative: they are given back */
  add({ namespace, owner }: Taker, bytes: number, keys: number): void {
    this.#bytes += bytes
    addTo(this.#namespaces, namespace, bytes, keys)
    addTo(this.#owners, owner, bytes, keys)
  }

  clear(): void {
    this.#bytes = 0
    this.#namespaces.clear()
    this.#owners.clear()
  }
}

function addTo(uses: Map<string, Use>, name: string, bytes: number, keys: number): void {
  const use = uses.get(name)
  if (use === undefined) {
    uses.set(name, { bytes, keys })
    return
  }
  use.bytes += bytes
  use.keys += keys
  if (use.keys === 0) uses.delete(name)
}

function quotaFault(what: string, maxBytes: number): HeddleError {
  return new HeddleError(
    'STATE_QUOTA',
    `${what}, ${Math.floor(maxBytes)} bytes; delete keys, give them a ttlMs, or raise STATE_MAX_BYTES`,
  )
}
