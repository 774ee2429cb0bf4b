// Assigns rows stored before their groups: published while plugins boot, or right after a new subscription.
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { Groups } from './groups.ts'
import type { Membership } from './membership.ts'
import type { Reader } from './reader.ts'
import type { Settler } from './settler.ts'
import type { SqlStore } from './sql-store.ts'

/** Maximum time between counting a subscription and its message to the primary, milliseconds. */
const MESSAGE_MAX_MS = 1000
/** Time after which inserts begun before the groups were known have ended, milliseconds. */
const INSERT_MAX_MS = 120_000
/** Pause before a failed write is repeated, milliseconds. */
const RETRY_MS = 1000

export interface EarlyRowsParts {
  store: SqlStore
  groups: Groups
  reader: Reader
  settler: Settler
  memory: StoreMemory
  clock: Clock
  /** Null on SQLite. */
  members: Membership | null
  /** True once this process ends. */
  isEnded: () => boolean
}

/**
 * ```
 *   booting ──► known     all subscribers of the boot are known to the hub
 * ```
 */
type State = 'booting' | 'known'

/** Waits until groups are stored, and then gives these rows to them. */
export class EarlyRows {
  readonly #parts: EarlyRowsParts
  #state: State = 'booting'
  /** Number of later subscriptions known to the hub. */
  #subscriptions = 0
  #stored: Promise<void> = Promise.resolve()
  /** When the groups were stored, by the steady clock; infinite while some are not. */
  #storedMs = Number.POSITIVE_INFINITY

  constructor(parts: EarlyRowsParts) {
    this.#parts = parts
  }

  /** All subscribers of the boot are known. Resolves when their groups are stored. */
  groupsKnown(): Promise<void> {
    this.#state = 'known'
    return this.#store()
  }

  /** A thread has counted a subscription, and the hub knows it now. @returns null if the group is stored with the groups of the boot */
  subscribed(): Promise<void> | null {
    this.#subscriptions++
    return this.#state === 'known' ? this.#store() : null
  }

  #store(): Promise<void> {
    const { memory, settler, groups, clock } = this.#parts
    const subscriptions = this.#subscriptions
    this.#storedMs = Number.POSITIVE_INFINITY
    const store = async (): Promise<void> => {
      // A late subscription is counted already.
      const stored = Math.min(subscriptions, memory.subscriptions)
      await this.#noteStored(stored)
      memory.groupsStored(stored)
      if (this.#subscriptions === subscriptions) this.#storedMs = clock.steadyMs()
    }
    this.#stored = Promise.all([settler.written(), groups.areJoined]).then(store)
    return this.#stored
  }

  /** On a server: lets other processes assign rows waiting for these groups. */
  async #noteStored(subscriptions: number): Promise<void> {
    const { members, clock, isEnded } = this.#parts
    for (; members !== null && !isEnded(); await pause(clock, RETRY_MS)) {
      try {
        return await members.store.subscriptionsStored(subscriptions)
      } catch {
        // The check of the membership reports why.
      }
    }
  }

  /** Resolves when the groups of all subscribers are stored. */
  async areGroupsStored(): Promise<void> {
    await this.#stored
    const { memory, clock, isEnded } = this.#parts
    await until(() => memory.areGroupsStored || isEnded(), clock.steadyMs() + MESSAGE_MAX_MS, { clock })
    if (memory.areGroupsStored || isEnded()) return
    // A thread died before it could report its subscription.
    this.#subscriptions = memory.subscriptions
    await this.#noteStored(this.#subscriptions)
    memory.groupsStored(this.#subscriptions)
  }

  /** Gives waiting rows to their groups. */
  async assign(): Promise<void> {
    const { store, reader } = this.#parts
    if (this.#state === 'booting' || !(await store.hasUnassigned())) return
    await store.assign()
    reader.rangAll()
  }

  /** Must be called regularly. */
  async look(): Promise<void> {
    const { clock, memory } = this.#parts
    if (clock.steadyMs() - this.#storedMs > INSERT_MAX_MS) memory.forgetLater()
    await this.assign()
  }
}
