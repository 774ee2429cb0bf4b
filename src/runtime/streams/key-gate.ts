/** How long until the store is asked again whether another thread has finished an event, milliseconds: at first, and at most. */
const CHECK_MS = 5
const CHECK_MAX_MS = 200

/** Says of each entry of a stream whether a group has finished it. */
export type Finished = (stream: string, group: string, entryIds: readonly string[]) => Promise<boolean[]>

interface Waiting {
  readonly stream: string
  readonly group: string
  readonly after: string
  readonly run: () => void
}

/**
 * Keeps events with one ordering key in their order, whichever thread handles them: each waits until the one before it is
 * acknowledged, or a dead letter. When another thread or process finishes that one, the store is asked for it.
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

  /** Runs `run` when the group has finished the entry `after`. */
  wait(stream: string, group: string, after: string, run: () => void): void {
    this.#waiting.push({ stream, group, after, run })
    this.#pauseMs = CHECK_MS
    this.#checkSoon()
  }

  get size(): number {
    return this.#waiting.length
  }

  /** The store has confirmed acknowledgements of this thread: what waits for these entries goes on at once. */
  acknowledged(stream: string, group: string, entryIds: readonly string[]): void {
    if (this.#waiting.length === 0) return
    const done = new Set(entryIds)
    this.#open((waiting) => waiting.stream === stream && waiting.group === group && done.has(waiting.after))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#waiting = []
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
    const byGroup = new Map<string, Waiting[]>()
    for (const waiting of this.#waiting) {
      const key = `${waiting.stream}\0${waiting.group}`
      byGroup.set(key, [...(byGroup.get(key) ?? []), waiting])
    }
    const free = new Set<Waiting>()
    await Promise.all(
      [...byGroup.values()].map(async (all) => {
        const { stream, group } = all[0]!
        try {
          const answers = await this.#finished(
            stream,
            group,
            all.map(({ after }) => after),
          )
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
