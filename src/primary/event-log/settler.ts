// Gathers what becomes of stored events, and writes it by the freest lane until the log has it.
import { Numbered } from '../../core/collections/numbered.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Chance, type Clock, pause, type Timer } from '../../core/schedule/clock.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { writeChanges } from '../../runtime/event-log/write-changes.ts'
import { writeStoreChanges } from '../../runtime/event-store/write-changes.ts'
import type { DeadRow, LogChanges } from '../../transport/log-changes.ts'
import type { StoreAnswer, StoreChanges } from '../../transport/store-changes.ts'
import type { Lane } from '../dispatch/lane.ts'
import { deadRowOf } from '../event-store/dead-rows.ts'
import type { FailedDelivery } from '../events/consumer.ts'

/** Changes gather for so long, milliseconds: many deletes cost little more than one. */
const GATHER_MS = 5
/** Pause after changes that the database did not take, milliseconds. */
const RETRY_MS = 250

export interface SettlerOptions {
  /** Commits changes. Rejects when nothing of them is known to be stored. */
  write: (changes: LogChanges) => Promise<void>
  clock: Clock
  chance: Chance
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
export class Settler {
  readonly #options: SettlerOptions
  #next = emptyBatch()
  /** The batch that is being written. */
  #current: Batch | null = null
  /** Positions of both. */
  readonly #forgetting = new Numbered<true>()
  #timer: Timer | undefined
  #isFailing = false
  #isClosed = false

  constructor(options: SettlerOptions) {
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

  /** Adds one change to those of its kind. */
  settle<Kind extends keyof LogChanges>(kind: Kind, change: LogChanges[Kind][number]): void {
    const changes: LogChanges[Kind][number][] = this.#next[kind]
    changes.push(change)
    this.#schedule()
  }

  /** Resolves when the letter is stored, however long that takes. */
  letter(letter: DeadRow): Promise<void> {
    this.settle('letters', letter)
    return this.written()
  }

  /** The row of a letter that is to be stored. */
  rowOf(failed: FailedDelivery): DeadRow {
    const { clock, chance } = this.#options
    return deadRowOf(failed, `dl_${chance.id()}`, clock.nowMs())
  }

  /** Resolves when everything that has been told so far is stored. */
  written(): Promise<void> {
    this.#schedule()
    return new Promise((resolve) => this.#next.written.push(resolve))
  }

  #schedule(): void {
    if (this.#isClosed) return
    if (this.#current === null) this.#timer ??= this.#options.clock.after(GATHER_MS, () => void this.#write())
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
        await pause(this.#options.clock, RETRY_MS)
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
    this.#options.clock.cancel(this.#timer)
    this.#timer = undefined
  }
}

const isEmpty = (changes: LogChanges): boolean => Object.values(changes).every(({ length }) => length === 0)

interface Written {
  lane: Lane
  resolve: (answer: StoreAnswer) => void
  reject: (error: Error) => void
}

/** Lets the lane that has the least to do write changes of the log: a commit would hold up the listener. */
export class LogLanes {
  readonly #lanes: () => readonly Lane[]
  readonly #log: EventLog
  readonly #open = new Map<number, Written>()
  #batch = 0

  /**
   * @param lanes those that take work
   * @param log of the primary, where there is no lane
   */
  constructor(lanes: () => readonly Lane[], log: EventLog) {
    this.#lanes = lanes
    this.#log = log
  }

  write(changes: LogChanges | StoreChanges): Promise<StoreAnswer> {
    let best: Lane | undefined
    for (const lane of this.#lanes()) {
      if (!lane.responsive || lane.state !== 'ready') continue
      if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
    }
    if (best === undefined) return this.#writeHere(changes)
    const lane = best
    const batch = ++this.#batch
    return new Promise((resolve, reject) => {
      this.#open.set(batch, { lane, resolve, reject })
      lane.post({ type: 'log-write', batch, changes })
    })
  }

  async #writeHere(changes: LogChanges | StoreChanges): Promise<StoreAnswer> {
    const { database, memory } = this.#log
    if ('promoteMs' in changes) return writeStoreChanges(database, changes)
    await writeChanges(database, changes, memory.epoch)
    return { promoted: [] }
  }

  written(batch: number, error: string | null, answer: StoreAnswer): void {
    const open = this.#open.get(batch)
    this.#open.delete(batch)
    if (error === null) open?.resolve(answer)
    else open?.reject(new Error(error))
  }

  /** The lane is gone: what it was to write is written by another. */
  laneGone(lane: Lane): void {
    for (const [batch, open] of this.#open) {
      if (open.lane !== lane) continue
      this.#open.delete(batch)
      open.reject(new Error('the lane that was to write them is gone'))
    }
  }
}
