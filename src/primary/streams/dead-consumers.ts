import type { BlackBox } from '../../contracts/registry.ts'
import { retryWhile } from '../../runtime/streams/retry-while.ts'
import type { Claimer } from './claimer.ts'
import type { ReadingThread } from './reading-thread.ts'
import { groupKey, type StreamGroup } from './stream-group.ts'

/** Before a claim that has failed is tried again, milliseconds. */
const RETRY_MS = 500
/** The last read of a thread may reach the store so long after the thread is gone, milliseconds: nobody handles the entries that it gets. */
const LATE_MS = 60_000

/**
 * Threads of this process that are gone. No new thread reads under the name of one until the hub has claimed its entries, and a while
 * longer: entries of a consumer that reads count as handled, so those that arrive late would never be claimed.
 */
export class DeadConsumers {
  readonly #claimer: Claimer
  readonly #mayTakeOver: () => boolean
  readonly #threads = new Set<ReadingThread>()
  readonly #formerStreamGroups = new Map<string, StreamGroup>()

  /** @param mayTakeOver false when this process begins nothing any more */
  constructor(claimer: Claimer, mayTakeOver: () => boolean) {
    this.#claimer = claimer
    this.#mayTakeOver = mayTakeOver
  }

  get threads(): readonly ReadingThread[] {
    return [...this.#threads]
  }

  /** The groups that they have read, also when their names are free again: the hub may have entries of these groups until there are new readers. */
  get formerStreamGroups(): readonly StreamGroup[] {
    return [...this.#formerStreamGroups.values()]
  }

  /**
   * Claims the thread's pending entries for the hub. Once this process ends they stay where they are until all are given back.
   * @param streamGroups the shared groups that it has read
   * @param blackBox null when it was told to end
   */
  async add(thread: ReadingThread, streamGroups: readonly StreamGroup[], blackBox: BlackBox | null): Promise<void> {
    this.#threads.add(thread)
    for (const streamGroup of streamGroups)
      this.#formerStreamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
    for (const { stream, group } of streamGroups) {
      const claim = (): Promise<number> => this.#claimer.claimFromConsumer(stream, group, thread.consumer, blackBox)
      await retryWhile(this.#mayTakeOver, claim, { pauseMs: RETRY_MS })
    }
    if (this.#mayTakeOver()) setTimeout(() => this.#threads.delete(thread), LATE_MS).unref()
  }
}
