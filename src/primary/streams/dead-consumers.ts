import type { BlackBox } from '../../contracts/registry.ts'
import { retryWhile } from '../../runtime/streams/retry-while.ts'
import type { Claimer } from './claimer.ts'
import type { ReadingThread } from './reading-thread.ts'
import { groupKey, type StreamGroup } from './stream-group.ts'

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500
/** A read that a thread had sent may reach the store so long after the thread has gone, milliseconds: what it is given then, nobody has. */
const LATE_MS = 60_000

/**
 * Threads of this process that have gone: until the hub has taken over what they had in hand, and a while longer, nobody reads under
 * their names. What somebody who reads is given counts as worked at: what comes late under a name that delayed is claimed.
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

  /** What they have read, those that are no deadConsumers any more too: the hub may have something of it in hand until there are new readers. */
  get formerStreamGroups(): readonly StreamGroup[] {
    return [...this.#formerStreamGroups.values()]
  }

  /**
   * What the thread had in hand goes to the hub. Not once this process ends: then it stays an orphan until all is given back.
   * @param streamGroups shared ones that it has read
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
