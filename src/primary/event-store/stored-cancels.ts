// Takes stored events back.
import type { Cancelled } from '../../contracts/event-bus.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { type Clock, nextTurn } from '../../core/schedule/clock.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { cancelRows } from '../../runtime/event-store/cancel-rows.ts'
import { findCaused } from '../../runtime/event-store/caused-rows.ts'
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import {
  CANCEL_KEPT_MS,
  type CancelAnswer,
  Cancels,
  isMeant,
  isTree,
  type Meant,
} from '../../runtime/events/cancelling.ts'
import type { HubEvent } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Doorbell } from './doorbell.ts'
import type { EventIndex } from './event-index.ts'
import type { Hand } from './hand.ts'
import type { RowCount } from './row-count.ts'
import type { StoredDelivery } from './store.ts'

/** Cancels may become visible so many numbers late. */
const LATE_MAX = 1000
/** Interval at which old notes are deleted, milliseconds. */
const PRUNE_MS = 60_000
/** Time for which other processes may answer how many of the events ran in them, milliseconds. */
const ANSWER_MS = 1000

export interface StoredCancelsParts {
  hub: Hub
  hand: Hand
  rows: RowCount
  clock: Clock
  database: () => StoreDatabase
  index: EventIndex
  /** Rows are gone. */
  onTaken: () => void
  /** Null on SQLite. */
  members: { readonly doorbell: Doorbell; readonly size: number } | null
}

type CancelledRows = Awaited<ReturnType<typeof cancelRows>>

interface Notice {
  n: number
  what: string
  last_seq: number
}

interface Waiting {
  left: number
  readonly answers: CancelAnswer[]
  readonly all: () => void
}

export class StoredCancels {
  readonly #parts: StoredCancelsParts
  /** Numbers of cancels that this process has made, or heard of. */
  readonly #known = new Set<number>()
  /** Rows of pages that are on their way may have been deleted meanwhile. */
  readonly #cancels = new Cancels()
  readonly #waiting = new Map<number, Waiting>()
  /** The highest number of a cancel that was read. */
  #lastN = 0
  /** By the steady clock. */
  #pruneAtMs = 0

  constructor(parts: StoredCancelsParts) {
    this.#parts = parts
  }

  async cancel(what: CancelTarget): Promise<Cancelled> {
    const { database } = this.#parts
    const db = database()
    const id = isTree(what) ? what.id : what
    if (typeof id === 'string') await this.#parts.index.want()
    const caused = await this.#causedBy(what)
    return this.#taken(what, await ownTransaction(db, (tx) => cancelRows(tx, db.dialect, what, caused)))
  }

  /** What is stored meanwhile is ended when it is read. */
  async #causedBy(what: CancelTarget): Promise<number[]> {
    const { clock, database } = this.#parts
    const db = database()
    return isTree(what) && db.dialect === 'sqlite' ? findCaused(db, what.id, () => nextTurn(clock)) : []
  }

  /** Rows are gone. */
  async #taken(what: CancelTarget, { seqs, n, lastSeq }: CancelledRows): Promise<Cancelled> {
    const { hub, hand, rows } = this.#parts
    rows.add(-seqs.length)
    this.#known.add(n)
    this.#note(what, lastSeq)
    const waiting = seqs.filter((seq) => !hand.has(seq)).length
    const own = hub.cancel(({ event }) => isMeant(what, event))
    const others = n === 0 ? [] : await this.#ask(n)
    const taken = others.reduce((sum, each) => sum + each.taken, 0)
    return {
      waiting: Math.max(0, waiting - taken) + own.waiting,
      running: others.reduce((sum, each) => sum + each.running, own.running),
    }
  }

  #note(what: CancelTarget, lastSeq: number): void {
    const { clock, hub, index, onTaken } = this.#parts
    onTaken()
    if (typeof what === 'string') void index.want()
    if (!isTree(what)) return void this.#cancels.add(what, lastSeq, clock.steadyMs())
    void index.want()
    index.wantCaused()
    // Whatever its number, and until the note is deleted, with which it is taken back once more.
    this.#cancels.add(what, Number.POSITIVE_INFINITY, clock.steadyMs() + CANCEL_KEPT_MS + 2 * PRUNE_MS)
    hub.closeTree(what)
  }

  /** A thread has taken events back in a transaction. */
  committed(): void {
    this.#parts.members?.doorbell.cancels()
    // Otherwise the next look finds them.
    void this.look().catch(() => {})
  }

  async #ask(n: number): Promise<readonly CancelAnswer[]> {
    const { members, clock } = this.#parts
    const answers: CancelAnswer[] = []
    const left = members === null ? 0 : members.size - 1
    if (left === 0) return answers
    const answered = new Promise<void>((resolve) => this.#waiting.set(n, { left, answers, all: resolve }))
    members!.doorbell.cancels()
    await withTimeout(answered, ANSWER_MS, undefined, clock)
    this.#waiting.delete(n)
    return answers
  }

  /** True for an event that was taken back in the last minutes. */
  isTakenBack(event: Meant, seq: number): boolean {
    return this.#cancels.has(event, seq)
  }

  /** True for a row that is deleted, or was stored while its event was taken back. @param readMs when it was read, by the steady clock */
  has({ seq, event }: StoredDelivery, readMs: number): boolean {
    return this.#cancels.has(event, seq, readMs)
  }

  // ── of other processes ────────────────────────────────────────────────────

  /** Another process has answered. */
  answered(answer: CancelAnswer): void {
    const waiting = this.#waiting.get(answer.n)
    if (waiting === undefined) return
    waiting.answers.push(answer)
    if (--waiting.left === 0) waiting.all()
  }

  /** Looks for what other processes have taken back. */
  async look(): Promise<void> {
    const notices = await this.#parts
      .database()
      .query<Notice>('SELECT n, what, last_seq FROM heddle_cancel WHERE n > $1', [this.#lastN - LATE_MAX])
    for (const n of this.#known) if (n <= this.#lastN - LATE_MAX) this.#known.delete(n)
    for (const { n } of notices) this.#lastN = Math.max(this.#lastN, Number(n))
    for (const notice of notices) this.#hear(notice)
  }

  #hear({ n: number, what: json, last_seq }: Notice): void {
    const { hub, hand, members } = this.#parts
    const n = Number(number)
    if (this.#known.has(n)) return
    this.#known.add(n)
    const what = JSON.parse(json) as CancelTarget
    this.#note(what, Number(last_seq))
    const isOld = ({ seq }: HubEvent): boolean => isTree(what) || (seq > 0 && seq <= Number(last_seq))
    const settling = hand.settling((event) => isMeant(what, event))
    const { running } = hub.cancel(({ event }) => isOld(event) && isMeant(what, event))
    members?.doorbell.answer({ n, taken: settling + running, running })
  }

  /** Forgets what everybody has heard of. What a tree has published meanwhile for a later time is taken back first. */
  async prune(): Promise<void> {
    const { clock, database } = this.#parts
    if (clock.steadyMs() < this.#pruneAtMs) return
    this.#pruneAtMs = clock.steadyMs() + PRUNE_MS
    const db = database()
    const old = `at_ms < ${CLOCK_MS[db.dialect]} - ${CANCEL_KEPT_MS}`
    const caused = new Map<string, number[]>()
    let last = 0
    for (const { n, what } of await db.query<Notice>(`SELECT n, what, last_seq FROM heddle_cancel WHERE ${old}`)) {
      last = Math.max(last, Number(n))
      if (!caused.has(what)) caused.set(what, await this.#causedBy(JSON.parse(what) as CancelTarget))
    }
    if (last === 0) return
    const taken = await ownTransaction(db, async (tx) => {
      const { rows } = await tx.execute<Notice>(
        `DELETE FROM heddle_cancel WHERE n <= $1 AND ${old} RETURNING n, what, last_seq`,
        [last],
      )
      const again: [CancelTarget, CancelledRows][] = []
      for (const json of new Set(rows.map(({ what }) => what))) {
        const what = JSON.parse(json) as CancelTarget
        if (isTree(what)) again.push([what, await cancelRows(tx, db.dialect, what, caused.get(json) ?? [], true)])
      }
      return again
    })
    for (const [what, rows] of taken) if (rows.n > 0) await this.#taken(what, rows)
  }
}
