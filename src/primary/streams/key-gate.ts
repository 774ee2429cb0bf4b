// The order of keys over processes.
import type { StreamGroup, TakenEntry } from './stream-group.ts'

/** How long until the store is asked again whether another process has finished an event, milliseconds: at first, and at most. */
const CHECK_MS = 5
const CHECK_MAX_MS = 200

/** Says of each entry of a stream whether a group has finished it. */
type Finished = (stream: string, group: string, entryIds: readonly string[]) => Promise<boolean[]>

interface Waiting {
  readonly entry: TakenEntry
  readonly after: string
  readonly run: () => void
}

/**
 * Keeps events with one ordering key in their order, whichever process handles them: each waits until the one before it is acknowledged, or a
 * dead letter. When another process finishes that one, the store is asked for it.
 */
export class KeyGate {
  readonly #finished: Finished
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #pauseMs = CHECK_MS
  #isClosed = false

  constructor(finished: Finished) {
    this.#finished = finished
  }

  get size(): number {
    return this.#waiting.length
  }

  /** True while entries of the group wait. */
  isWaitedFor(group: StreamGroup): boolean {
    return this.#waiting.some(({ entry }) => entry.group === group)
  }

  /** Runs `run` when the group has finished the entry `after`. */
  wait(entry: TakenEntry, after: string, run: () => void): void {
    this.#waiting.push({ entry, after, run })
    this.#pauseMs = CHECK_MS
    this.#checkSoon()
  }

  /** This process has finished these entries: what waits for them goes on at once. */
  finished(group: StreamGroup, entries: readonly TakenEntry[]): void {
    if (this.#waiting.length === 0) return
    const done = new Set(entries.map(({ id }) => id))
    this.#open((waiting) => waiting.entry.group === group && done.has(waiting.after))
  }

  /** Nothing that waits is begun any more. @returns the entries that have waited */
  close(): TakenEntry[] {
    this.#isClosed = true
    clearTimeout(this.#timer)
    return this.#waiting.splice(0).map(({ entry }) => entry)
  }

  #open(isFree: (waiting: Waiting) => boolean): void {
    const free = this.#waiting.filter(isFree)
    if (free.length === 0) return
    this.#waiting = this.#waiting.filter((waiting) => !free.includes(waiting))
    this.#pauseMs = CHECK_MS
    for (const { run } of free) run()
  }

  #checkSoon(): void {
    if (this.#isClosed) return
    this.#timer ??= setTimeout(() => void this.#check(), this.#pauseMs)
  }

  async #check(): Promise<void> {
    this.#pauseMs = Math.min(CHECK_MAX_MS, this.#pauseMs * 2)
    const byGroup = new Map<StreamGroup, Waiting[]>()
    for (const waiting of this.#waiting) {
      const { group } = waiting.entry
      byGroup.set(group, [...(byGroup.get(group) ?? []), waiting])
    }
    const free = new Set<Waiting>()
    await Promise.all(
      [...byGroup].map(async ([{ stream, name }, all]) => {
        try {
          const ids = all.map(({ after }) => after)
          const answers = await this.#finished(stream, name, ids)
          all.forEach((waiting, n) => {
            if (answers[n]) free.add(waiting)
          })
        } catch {
          // The store does not answer: it is asked again.
        }
      }),
    )
    this.#timer = undefined
    this.#open((waiting) => free.has(waiting))
    if (this.#waiting.length > 0) this.#checkSoon()
  }
}
