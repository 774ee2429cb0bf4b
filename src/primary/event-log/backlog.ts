import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { inOrderOfCommits, PAGE_ROWS, readAfter, readInOrder, readReturned, type StoredRow } from './log-reader.ts'
import { PositionQueue } from './position-queue.ts'
import type { SharedLog } from './shared-log.ts'

export interface BacklogOptions {
  log: EventLog
  /** Null where this process has the log alone. */
  shared: () => SharedLog | null
  /** Resolves when all changes so far are written: they concern what is to be read. */
  written: () => Promise<void>
  /** Positions of the events of the hub that wait for a group beside. */
  awaiting: (event: string, group: string) => number[]
  /** True while a dead lane may have stored events that it could not hand on. */
  isUncertain: () => boolean
  /** True when changes of what waits here may be under way. */
  hasUnwritten: () => boolean
  /** Adds the positions of events that leave the hub from now on, until it is called with null. */
  collectLeavers: (leavers: Set<number> | null) => void
}

/** Takes a page that was read, the oldest first. */
export type PageTaker = (rows: readonly StoredRow[]) => void | Promise<void>

interface Page {
  rows: StoredRow[]
  /** An event of it has left the hub while it was read. */
  isStale: boolean
}

/** A group that is here again, and from where on what has waited for it is still to be read. */
interface Returned {
  event: string
  group: string
  after: number
}

/**
 * Stored events that wait in the log, and in which order they are read. What has a key must not pass what is here: of each key it may be the older.
 *
 * 1. What has waited for a group that has come back.
 * 2. What has waited for a key that goes on, or that nobody had handed on.
 * 3. What an earlier process has left.
 * 4. What had no room in the hub, or stood behind something of this list.
 * 5. What belongs to no process, and has a key that this one delivers.
 */
export class Backlog {
  readonly #options: BacklogOptions
  readonly #returned: Returned[] = []
  readonly #freed = new PositionQueue()
  #isFreedInOrder = true
  /** What had no room. */
  readonly passed = new PositionQueue()
  /** What an earlier process has left on a file: events after `from`, up to `last`. */
  #left = { from: 0, last: 0 }
  /** What this process has taken of no process's while something older came up. */
  #taken: StoredRow[] = []
  #isReading = false
  /** Counts what comes to stand before everything that is being read. */
  #turns = 0

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** Up to where an earlier process has left events, on a file. */
  get leftUpTo(): number {
    return this.#left.last
  }

  /** @param from events after this position. @param last up to this one */
  leave(from: number, last: number): void {
    this.#left = { from, last }
  }

  /** Events that wait here, as far as that is known before they are read. */
  get size(): number {
    return this.#left.last - this.#left.from + this.passed.size + this.#freed.size + this.#taken.length
  }

  has(seq: number): boolean {
    return this.passed.has(seq) || this.#freed.has(seq) || this.#taken.some(({ row }) => Number(row.seq) === seq)
  }

  /** True when an event with a key may pass: nothing that has been stored before waits here, or is on its way from here. */
  get isEmpty(): boolean {
    if (this.#isReading || this.#hasLeft || this.#mustWait) return false
    return this.passed.size + this.#freed.size + this.#returned.length + this.#taken.length === 0
  }

  /** Older events of their keys may come up: what was stored last is not read before. */
  get #mustWait(): boolean {
    return this.#options.shared()?.isSettling === true || this.#options.isUncertain()
  }

  get #hasPassed(): boolean {
    return this.passed.size > 0 && !this.#mustWait
  }

  /** True when there is something to be read. */
  get hasMore(): boolean {
    if (this.#hasLeft || this.#hasPassed || this.#freed.size + this.#returned.length + this.#taken.length > 0)
      return true
    return this.#options.shared()?.hasFree === true
  }

  get #hasLeft(): boolean {
    return this.#left.last > this.#left.from || this.#options.shared()?.members.hasOrphans === true
  }

  /** An event has no room, or waits behind others. */
  pass(seq: number): void {
    this.passed.push(seq)
  }

  /** They go on before everything that came later. */
  free(positions: Iterable<number>): void {
    this.#addFreed(positions)
    this.#turns++
  }

  /** A group is here for which events may wait. */
  groupReturned(event: string, group: string): void {
    const at = this.#returned.findIndex((each) => each.event === event && each.group === group)
    // From the start: it may have gone and come once more.
    this.#returned[at < 0 ? this.#returned.length : at] = { event, group, after: 0 }
    this.#turns++
  }

  /** Reads the next page, and gives it on before anything else can come. */
  async read(take: PageTaker): Promise<void> {
    this.#isReading = true
    try {
      if (this.#returned.length > 0) await this.#readReturned(this.#returned[0]!, take)
      else if (this.#freed.size > 0) await this.#readListed(this.#freed, take)
      else if (this.#hasLeft) await this.#readLeft(take)
      else if (this.#taken.length > 0) await take(this.#taken.splice(0))
      else if (this.#hasPassed) await this.#readListed(this.passed, take)
      else await this.#readFree(take)
    } finally {
      this.#isReading = false
    }
  }

  async #readReturned(returned: Returned, take: PageTaker): Promise<void> {
    const { log, awaiting } = this.#options
    const { epoch } = log.memory
    // What has not been read of an earlier process is read for all its groups together.
    const last = this.#left.last > this.#left.from ? this.#left.from : Number.MAX_SAFE_INTEGER
    const { rows, isStale } = await this.#readRows(true, () => readReturned(log.database, { ...returned, last, epoch }))
    // Rows that are taken as they are read are as they were left.
    if (this.#returned[0] !== returned || (isStale && epoch === 0)) return
    if (rows.length > 0) returned.after = Number(rows.at(-1)!.row.seq)
    await take(epoch === 0 ? rows : asNew(rows))
    if (rows.length === PAGE_ROWS || this.#returned[0] !== returned) return
    this.#returned.shift()
    // Where several processes share the log, those that are at hand have not been read with the others: they are younger.
    if (epoch !== 0) this.free(awaiting(returned.event, returned.group))
  }

  /** Takes events of no process. What has come up meanwhile is older, and goes first. */
  async #readFree(take: PageTaker): Promise<void> {
    const turns = this.#turns
    const rows = (await this.#options.shared()?.nextFree()) ?? []
    if (turns === this.#turns) await take(rows)
    else this.#taken = rows
  }

  #addFreed(positions: Iterable<number>): void {
    this.#freed.merge(positions)
    this.#isFreedInOrder = this.#options.log.memory.epoch === 0
  }

  /** Where several processes share the log, each has positions of its own, which say nothing about the order over all. */
  async #arrangeFreed(): Promise<void> {
    while (!this.#isFreedInOrder) {
      // Others may come meanwhile.
      this.#isFreedInOrder = true
      try {
        const inOrder = await inOrderOfCommits(this.#options.log.database, this.#freed.list())
        if (this.#isFreedInOrder) this.#freed.arrange(inOrder)
      } catch (error) {
        this.#isFreedInOrder = false
        throw error
      }
    }
  }

  async #readListed(queue: PositionQueue, take: PageTaker): Promise<void> {
    if (queue === this.#freed) await this.#arrangeFreed()
    const positions = queue.take(PAGE_ROWS)
    const turns = this.#turns
    let page: Page = { rows: [], isStale: true }
    try {
      const mustFlush = queue === this.#freed || this.#options.hasUnwritten()
      page = await this.#readRows(mustFlush, () => readInOrder(this.#options.log, positions))
    } catch (error) {
      this.#restore(queue, positions)
      throw error
    }
    if (turns === this.#turns && !page.isStale) await take(page.rows)
    else this.#restore(queue, positions)
  }

  /** What an event was before it left the hub would be done again by those who were done with it at that moment: it is to be read once more. */
  async #readRows(mustFlush: boolean, read: () => Promise<StoredRow[]>): Promise<Page> {
    const { collectLeavers, written } = this.#options
    const gone = new Set<number>()
    // What ends while earlier changes are written is not among those.
    collectLeavers(gone)
    try {
      if (mustFlush) await written()
      const rows = await read()
      return { rows, isStale: gone.size > 0 && rows.some(({ row }) => gone.has(Number(row.seq))) }
    } finally {
      collectLeavers(null)
    }
  }

  #restore(queue: PositionQueue, positions: readonly number[]): void {
    if (queue === this.#freed) this.#addFreed(positions)
    else queue.putBack(positions)
  }

  async #readLeft(take: PageTaker): Promise<void> {
    const { log, shared } = this.#options
    const others = shared()
    if (others !== null) return take(asNew(await others.nextLeft()))
    const { from, last } = this.#left
    const turns = this.#turns
    const rows = await readAfter(log.database, from, last)
    if (turns !== this.#turns) return
    this.#left.from = rows.length < PAGE_ROWS ? last : Number(rows.at(-1)!.row.seq)
    await take(asNew(rows))
  }
}

const asNew = (rows: readonly StoredRow[]): StoredRow[] => rows.map((row) => ({ ...row, isNew: true }))
