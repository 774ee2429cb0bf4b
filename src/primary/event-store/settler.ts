// Gathers outcomes of deliveries and commits them in batches.
import { messageOf } from '../../core/errors/description.ts'
import { type Chance, type Clock, pause, type Timer } from '../../core/schedule/clock.ts'
import type {
  BegunRow,
  DeadRow,
  FencedSlot,
  GroupRow,
  NotedDelivery,
  ReplayEnd,
  StoreAnswer,
  StoreChanges,
} from '../../transport/store-changes.ts'
import type { FailedDelivery } from '../events/consumer.ts'
import { deadRowOf } from './dead-rows.ts'
import type { OwnedSlot } from './slots.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** Time for which changes are gathered, milliseconds: many deletes cost little more than one. */
const GATHER_MS = 5
/** Pause before a failed batch is written again, milliseconds. */
const RETRY_MS = 250

export interface SettlerParts {
  /** Commits changes. Rejects if the outcome is unknown. */
  write: (changes: StoreChanges) => Promise<StoreAnswer>
  clock: Clock
  chance: Chance
  /** On a server: number of this member. */
  member?: () => number
  log: (level: 'WARNING' | 'INFO' | 'ERROR', message: string) => void
}

/** Number of refusals of a batch after which its changes are written one by one, again after as many more. */
const ALONE_EVERY = 4
/** Number of refusals after which a change is left out, if others are accepted. */
const LEFT_OUT_AFTER = 3 * ALONE_EVERY

interface Batch extends StoreChanges {
  /** Rows that leave the hand after the commit but stay in the store: retries for later, or elsewhere. */
  readonly leaving: number[]
  /** On a server: the slots of the rows. */
  readonly slots: Map<OwnedSlot, number[]>
  readonly written: (() => void)[]
  /** By row: called with it as it is, or null. */
  readonly beginning: Map<number, (row: BegunRow | null) => void>
}

const emptyChanges = (part: Partial<StoreChanges> = {}): StoreChanges => ({
  done: [],
  noted: [],
  begun: [],
  deadLetters: [],
  replayed: [],
  groups: [],
  promoteMs: 0,
  ...part,
})

const emptyBatch = (): Batch => ({
  ...emptyChanges(),
  leaving: [],
  slots: new Map(),
  written: [],
  beginning: new Map(),
})

const NO_ROW: NotedDelivery = { seq: 0, attempt: 1, deaths: 0, error: '', isBegun: false, retryMs: 0, dueMs: 0 }

/** Returns the changes one by one, in the order of writing. Deletes stay together: they are not refused one by one. */
const partsOf = ({
  done,
  noted,
  begun,
  deadLetters,
  replayed,
  groups,
  promoteMs,
  ...fences
}: StoreChanges): StoreChanges[] => {
  const part = (only: Partial<StoreChanges>): StoreChanges => emptyChanges({ ...only, ...fences })
  return [
    ...groups.map((row) => part({ groups: [row] })),
    ...noted.map((row) => part({ noted: [row] })),
    ...(begun.length === 0 ? [] : [part({ begun })]),
    ...deadLetters.map((row) => part({ deadLetters: [row] })),
    ...replayed.map((end) => part({ replayed: [end] })),
    part({ done }),
    part({ promoteMs }),
  ]
}

const joined = (parts: readonly StoreChanges[]): StoreChanges => ({
  ...parts[0],
  done: parts.flatMap(({ done }) => done),
  noted: parts.flatMap(({ noted }) => noted),
  begun: parts.flatMap(({ begun }) => begun),
  deadLetters: parts.flatMap(({ deadLetters }) => deadLetters),
  replayed: parts.flatMap(({ replayed }) => replayed),
  groups: parts.flatMap(({ groups }) => groups),
  promoteMs: Math.max(0, ...parts.map(({ promoteMs }) => promoteMs)),
})

/** Writes one batch after another, each until it is committed. */
export class Settler {
  /** Called after a commit, with the rows that leave the hand, and the number of them deleted from the store. */
  onCommitted: (seqs: readonly number[], deleted: number) => void = () => {}
  /** Called with slots taken by other processes: none of their rows were written. */
  onLost: (slots: readonly OwnedSlot[]) => void = () => {}
  /** Called with the due time of a waiting row, milliseconds since the epoch. */
  onLater: (seq: number, dueMs: number) => void = () => {}
  /** Called with dead letters that block nothing: their rows were taken back before they were stored. */
  onUnstored: (deadLetters: readonly string[]) => void = () => {}
  /** Called with the groups whose due rows were moved; null: unknown, because an answer was lost. */
  onPromoted: (groups: readonly number[] | null) => void = () => {}
  readonly #parts: SettlerParts
  #next = emptyBatch()
  /** idle ──► gathering ──► writing ──► idle; each ──► closed */
  #state: 'idle' | 'gathering' | 'writing' | 'closed' = 'idle'
  #isFailing = false
  #timer: Timer | undefined

  constructor(parts: SettlerParts) {
    this.#parts = parts
  }

  get isIdle(): boolean {
    return this.#state === 'idle' || this.#state === 'closed'
  }

  /** Fences the changes of the row by its slot. */
  #isIn(slot: OwnedSlot | undefined, seq: number): void {
    if (slot === undefined) return
    const seqs = this.#next.slots.get(slot)
    if (seqs === undefined) this.#next.slots.set(slot, [seq])
    else seqs.push(seq)
  }

  done(seq: number, slot?: OwnedSlot): void {
    this.#isIn(slot, seq)
    this.#next.done.push(seq)
    this.#schedule()
  }

  /** @param leaves the row leaves the hand after the commit */
  note(noted: NotedDelivery, slot?: OwnedSlot, leaves = noted.dueMs > 0): void {
    this.#isIn(slot, noted.seq)
    this.#next.noted.push(noted)
    if (leaves) this.#next.leaving.push(noted.seq)
    this.#schedule()
  }

  /** A handler begins a row. @returns the row as it is then; null if it is gone, not due, or no longer of this process */
  begin(seq: number, slot?: OwnedSlot): Promise<BegunRow | null> {
    this.#isIn(slot, seq)
    this.#next.begun.push(seq)
    return new Promise((resolve) => {
      this.#next.beginning.set(seq, resolve)
      this.#schedule()
    })
  }

  replayed(end: ReplayEnd, slot?: OwnedSlot): void {
    this.#isIn(slot, end.seq)
    this.#next.replayed.push(end)
    this.#schedule()
  }

  group(row: GroupRow): void {
    this.#next.groups.push(row)
    this.#schedule()
  }

  promote(dueMs: number): void {
    this.#next.promoteMs = Math.max(this.#next.promoteMs, dueMs)
    this.#schedule()
  }

  /** Resolves when the dead letter is stored, with no time limit. */
  deadLetter(deadLetter: StoreChanges['deadLetters'][number], slot?: OwnedSlot): Promise<void> {
    if (deadLetter.seq > 0) this.#isIn(slot, deadLetter.seq)
    this.#next.deadLetters.push(deadLetter)
    return this.written()
  }

  rowOf(failed: FailedDelivery): DeadRow {
    const { clock, chance } = this.#parts
    return deadRowOf(failed, `dl_${chance.id()}`, clock.nowMs())
  }

  /** Resolves when everything added so far is stored. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.#next.written.push(resolve)
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#state !== 'idle') return
    this.#state = 'gathering'
    this.#timer = this.#parts.clock.after(GATHER_MS, () => void this.#write())
  }

  async #write(): Promise<void> {
    const batch = this.#next
    this.#next = emptyBatch()
    this.#state = 'writing'
    const answer = await this.#commit(batch)
    if (answer === null) return
    this.#state = 'idle'
    const { done, deadLetters, leaving, slots, written, beginning } = batch
    if (answer.lost !== undefined && answer.lost.length > 0) {
      const all = [...slots.keys()]
      this.onLost(answer.lost.map((n) => all[n]!))
    }
    this.onCommitted(done, done.length)
    // A dead letter of a broadcast has no row of its own.
    const replaced = deadLetters.flatMap(({ seq }) => (seq > 0 ? [seq] : []))
    this.onCommitted(replaced, replaced.length)
    this.onCommitted(leaving, 0)
    if (answer.unstored !== undefined) this.onUnstored(answer.unstored)
    for (const { seq, dueMs } of batch.noted) if (dueMs > 0) this.onLater(seq, dueMs)
    if (batch.promoteMs > 0) this.onPromoted(answer.isRepeated ? null : answer.promoted)
    for (const resolve of written) resolve()
    for (const [seq, resolve] of beginning) resolve(answer.begun?.find((row) => row.seq === seq) ?? null)
    if (!isEmpty(this.#next)) this.#schedule()
  }

  /** @returns null if this process ends first */
  async #commit({
    leaving: _,
    written: __,
    beginning: ___,
    slots,
    ...lists
  }: Batch): Promise<(StoreAnswer & { isRepeated: boolean }) | null> {
    const { write, log, clock, member } = this.#parts
    let changes: StoreChanges =
      member === undefined ? lists : { ...lists, fences: { member: member(), slots: fencesOf(slots) } }
    for (let refusals = 0; ; refusals++) {
      const isRepeated = refusals > 0
      try {
        // A change that is never accepted must not stop the others.
        if (refusals > 0 && refusals % ALONE_EVERY === 0)
          changes = await this.#writeAlone(changes, refusals >= LEFT_OUT_AFTER)
        const answer = await write(changes)
        if (this.#isFailing) log('INFO', 'Writing to the event store works again')
        this.#isFailing = false
        return this.#state === 'writing' ? { ...answer, isRepeated } : null
      } catch (error) {
        if (!this.#isFailing) log('WARNING', `Writing to the event store failed and is repeated: ${messageOf(error)}`)
        this.#isFailing = true
        await pause(clock, RETRY_MS)
        if (this.#state !== 'writing') return null
      }
    }
  }

  /**
   * Writes each of the changes alone.
   * @param mayLeaveOut leaves out refused changes while others are accepted: the row stays unchanged until the next process
   * @returns the refused changes
   */
  async #writeAlone(changes: StoreChanges, mayLeaveOut: boolean): Promise<StoreChanges> {
    const { write, log } = this.#parts
    // Changes nothing, so it is refused only if everything is.
    const parts = [emptyChanges({ noted: [NO_ROW] }), ...partsOf(changes)]
    const refused: { part: StoreChanges; reason: string }[] = []
    for (const part of parts) {
      if (this.#state !== 'writing') break
      await write(part).catch((error) => refused.push({ part, reason: messageOf(error) }))
    }
    if (refused[0]?.part === parts[0]) throw new Error(refused[0]!.reason)
    if (!mayLeaveOut) return joined(refused.map(({ part }) => part))
    for (const { part, reason } of refused)
      log(
        'ERROR',
        `A change of the event store cannot be stored and was skipped: ${reason}: ${toJson(part).slice(0, 500)}`,
      )
    const { fences } = changes
    return emptyChanges(fences === undefined ? {} : { fences })
  }

  /** Drops unwritten changes: the next process delivers their rows again. */
  close(): void {
    this.#state = 'closed'
    this.#parts.clock.cancel(this.#timer)
  }
}

const fencesOf = (slots: ReadonlyMap<OwnedSlot, number[]>): FencedSlot[] =>
  [...slots].map(([{ group, slot, epoch }, seqs]) => ({ group, slot, epoch, seqs }))

const isEmpty = ({ promoteMs, slots: _, beginning: __, ...lists }: Batch): boolean =>
  promoteMs === 0 && Object.values(lists).every((list) => Array.isArray(list) && list.length === 0)
