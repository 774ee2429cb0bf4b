// The order of keys over processes.
import type { StreamGroup, TakenEntry } from './stream-group.ts'

/** How long until the store is asked again whether another process has finished an event, milliseconds: at first, and at most. */
const CHECK_MS = 5
const CHECK_MAX_MS = 200

/** Says of each entry of a stream whether a group has finished it. */
type Finished = (stream: string, group: string, entryIds: readonly string[]) => Promise<boolean[]>

interface Waiting {
  readonly entry: TakenEntry
  readonly run: () => void
}

/**
 * Keeps events with one ordering key in their order, whichever process handles them: each waits until the one before it is acknowledged, or a
 * dead letter. When another process finishes that one, the store is asked for it.
 */
export class KeyGate {
  readonly #finished: Finished
  /** By group and the entry that is waited for: mostly one. */
  readonly #waiting = new Map<StreamGroup, Map<string, Waiting[]>>()
  #timer: NodeJS.Timeout | undefined
  #pauseMs = CHECK_MS
  #isClosed = false

  constructor(finished: Finished) {
    this.#finished = finished
  }

  /** True while entries of the group wait. */
  isWaitedFor(group: StreamGroup): boolean {
    return this.#waiting.has(group)
  }

  /** Runs `run` when the group has finished the entry `after`. */
  wait(entry: TakenEntry, after: string, run: () => void): void {
    const { group } = entry
    const waiting = this.#waiting.get(group) ?? new Map<string, Waiting[]>()
    this.#waiting.set(group, waiting)
    waiting.set(after, [...(waiting.get(after) ?? []), { entry, run }])
    this.#pauseMs = CHECK_MS
    this.#checkSoon()
  }

  /** The group has finished an entry: what waits for it goes on. */
  finished(group: StreamGroup, after: string): void {
    const waiting = this.#waiting.get(group)
    const free = waiting?.get(after)
    if (free === undefined) return
    waiting!.delete(after)
    if (waiting!.size === 0) this.#waiting.delete(group)
    this.#pauseMs = CHECK_MS
    for (const { run } of free) run()
  }

  /** Nothing that waits is begun any more. @returns the entries that have waited */
  close(): TakenEntry[] {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const left = [...this.#waiting.values()].flatMap((waiting) => [...waiting.values()].flat())
    this.#waiting.clear()
    return left.map(({ entry }) => entry)
  }

  #checkSoon(): void {
    if (this.#isClosed) return
    this.#timer ??= setTimeout(() => void this.#check(), this.#pauseMs)
  }

  async #check(): Promise<void> {
    this.#pauseMs = Math.min(CHECK_MAX_MS, this.#pauseMs * 2)
    const all = [...this.#waiting].map(([group, waiting]) => ({ group, ids: [...waiting.keys()] }))
    await Promise.all(
      all.map(async ({ group, ids }) => {
        try {
          const answers = await this.#finished(group.stream, group.name, ids)
          for (const [n, id] of ids.entries()) if (answers[n]) this.finished(group, id)
        } catch {
          // The store does not answer: it is asked again.
        }
      }),
    )
    this.#timer = undefined
    if (this.#waiting.size > 0) this.#checkSoon()
  }
}
