import { Numbered } from '../../core/collections/numbered.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { DeadRow, GroupRow, LogChanges, ReplayEnd, WaitingDelivery } from '../../transport/log-changes.ts'

/** Changes gather for so long, milliseconds: many deletes cost little more than one. */
const GATHER_MS = 5
/** Pause after changes that the database did not take, milliseconds. */
const RETRY_MS = 250

export interface ChangeWriterOptions {
  /** Commits changes. Rejects when nothing of them is known to be stored. */
  write: (changes: LogChanges) => Promise<void>
  log: (level: 'WARNING' | 'INFO', message: string) => void
}

interface Batch extends LogChanges {
  readonly written: (() => void)[]
}

const emptyBatch = (): Batch => ({
  forget: [],
  split: [],
  done: [],
  waiting: [],
  letters: [],
  replayed: [],
  released: [],
  groups: [],
  written: [],
})

/** Gathers what becomes of stored events, and writes it: one batch after another, each until the database has taken it. */
export class ChangeWriter {
  readonly #options: ChangeWriterOptions
  #next = emptyBatch()
  /** The batch that is being written. */
  #current: Batch | null = null
  /** Positions of both. */
  readonly #forgetting = new Numbered<true>()
  #timer: NodeJS.Timeout | undefined
  #isFailing = false
  #isClosed = false

  constructor(options: ChangeWriterOptions) {
    this.#options = options
  }

  /** True until the deletion of the event is committed. */
  isForgetting(seq: number): boolean {
    return this.#forgetting.get(seq) === true
  }

  /** Positions of the events whose deletion is not committed. */
  get forgetting(): readonly number[] {
    return this.#forgetting.numbers()
  }

  get isIdle(): boolean {
    return this.#current === null && this.#timer === undefined
  }

  forget(seq: number, isSplit: boolean): void {
    this.#forgetting.set(seq, true)
    this.#next.forget.push(seq)
    if (isSplit) this.#next.split.push(seq)
    this.#schedule()
  }

  done(seq: number, group: string): void {
    this.#next.done.push({ seq, group })
    this.#schedule()
  }

  waiting(delivery: WaitingDelivery): void {
    this.#next.waiting.push(delivery)
    this.#schedule()
  }

  replayed(end: ReplayEnd): void {
    this.#next.replayed.push(end)
    this.#schedule()
  }

  release(seq: number): void {
    this.#next.released.push(seq)
    this.#schedule()
  }

  group(row: GroupRow): void {
    this.#next.groups.push(row)
    this.#schedule()
  }

  /** Resolves when the letter is stored, however long that takes. */
  letter(letter: DeadRow): Promise<void> {
    this.#next.letters.push(letter)
    this.#schedule()
    return new Promise((resolve) => this.#next.written.push(resolve))
  }

  /** Resolves when everything that has been told so far is stored. */
  written(): Promise<void> {
    this.#schedule()
    return new Promise((resolve) => this.#next.written.push(resolve))
  }

  #schedule(): void {
    if (this.#isClosed) return
    if (this.#current === null) this.#timer ??= setTimeout(() => void this.#write(), GATHER_MS)
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    const batch = this.#next
    this.#current = batch
    this.#next = emptyBatch()
    const { written, ...changes } = batch
    while (!this.#isClosed) {
      try {
        await this.#options.write(changes)
        if (this.#isFailing) this.#options.log('INFO', 'The event log takes changes again')
        this.#isFailing = false
        break
      } catch (error) {
        if (!this.#isFailing) {
          this.#options.log('WARNING', `The event log does not take changes, they are tried again: ${messageOf(error)}`)
        }
        this.#isFailing = true
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
    for (const seq of batch.forget) this.#forgetting.take(seq)
    this.#current = null
    for (const resolve of written) resolve()
    if (!isEmpty(this.#next)) this.#schedule()
  }

  /** Changes that are not written now are not repeated: their events are delivered again by the next process. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

const isEmpty = (changes: LogChanges): boolean => Object.values(changes).every(({ length }) => length === 0)
