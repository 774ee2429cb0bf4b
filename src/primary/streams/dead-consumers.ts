import type { BlackBox } from '../../contracts/registry.ts'
import type { Takeover } from './claimer.ts'
import type { ReadingThread } from './reading-thread.ts'
import { type Pair, pairKey } from './stream-group.ts'

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500
/** A read that a thread had sent may reach the store so long after the thread has gone, milliseconds: what it is given then, nobody has. */
const LATE_MS = 60_000

/**
 * Threads of this process that have gone: until the hub has taken over what they had in hand, and a while longer, nobody reads under
 * their names. What somebody who reads is given counts as worked at: what comes late under a name that rests is claimed.
 */
export class Orphans {
  readonly #takeover: Takeover
  readonly #mayTakeOver: () => boolean
  readonly #threads = new Set<ReadingThread>()
  readonly #formerPairs = new Map<string, Pair>()

  /** @param mayTakeOver false when this process begins nothing any more */
  constructor(takeover: Takeover, mayTakeOver: () => boolean) {
    this.#takeover = takeover
    this.#mayTakeOver = mayTakeOver
  }

  get threads(): readonly ReadingThread[] {
    return [...this.#threads]
  }

  /** What they have read, those that are no orphans any more too: the hub may have something of it in hand until there are new readers. */
  get formerPairs(): readonly Pair[] {
    return [...this.#formerPairs.values()]
  }

  /**
   * What the thread had in hand goes to the hub. Not once this process ends: then it stays an orphan until all is given back.
   * @param pairs shared ones that it has read
   * @param blackBox null when it was told to end
   */
  async inherit(thread: ReadingThread, pairs: readonly Pair[], blackBox: BlackBox | null): Promise<void> {
    this.#threads.add(thread)
    for (const pair of pairs) this.#formerPairs.set(pairKey(pair.stream, pair.group), pair)
    for (const { stream, group } of pairs) {
      while (this.#mayTakeOver()) {
        try {
          await this.#takeover.ofConsumer(stream, group, thread.consumer, blackBox)
          break
        } catch {
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        }
      }
    }
    if (this.#mayTakeOver()) setTimeout(() => this.#threads.delete(thread), LATE_MS).unref()
  }
}
