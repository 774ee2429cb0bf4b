// Takes stored events back.
import type { Queryable } from '../../contracts/db.ts'
import type { Cancelled } from '../../contracts/event-bus.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { type Clock, nextTurn } from '../../core/schedule/clock.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { type CancelNote, noteRevival } from '../../runtime/event-store/cancel-notes.ts'
import { type CancelledRows, cancelLateRows, cancelRows } from '../../runtime/event-store/cancel-rows.ts'
import { findCaused } from '../../runtime/event-store/caused-rows.ts'
import { CLOCK_MS, ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import {
  CANCEL_KEPT_MS,
  type CancelAnswer,
  Cancels,
  isMeant,
  isRevival,
  isTree,
  lateOf,
  type Meant,
  type Revived,
} from '../../runtime/events/cancelling.ts'
import type { Delivery, HubEvent } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Doorbell } from './doorbell.ts'
import type { EventIndex } from './event-index.ts'
import type { Hand } from './hand.ts'
import type { RowCount } from './row-count.ts'
import { isMalformed, type MalformedRow, type StoredDelivery } from './store.ts'

/** Cancels may become visible so many numbers late. */
const LATE_MAX = 1000
/** Interval at which old notes are deleted, milliseconds. */
const PRUNE_MS = 60_000
/** Time for which other processes may answer how many of the events ran in them, milliseconds. */
const ANSWER_MS = 1000
/** Time for which handlers of a tree are not told before other processes have heard of its cancel, milliseconds. */
const HEARD_MS = 100

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
  /** Numbers of cancels that this process has made, or heard of, as far back as it looks: about LATE_MAX. */
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
    this.#knows(n)
    this.#note(what, lastSeq)
    const gone = new Set(seqs)
    // The hub has a row that was replaced as it was before.
    const isWanted = ({ event }: Delivery): boolean => gone.has(event.seq) || this.#isMeant(what, event)
    const ownWaiting = hub.cancelWaiting(isWanted)
    // Those that may have been replaced have gone back.
    const waiting = seqs.filter((seq) => !hand.has(seq)).length
    const asked = n === 0 ? Promise.resolve([]) : this.#ask(n)
    // What handlers publish when they are told may be read by another process.
    if (isTree(what)) await withTimeout(asked, HEARD_MS, undefined, this.#parts.clock)
    const ownRunning = hub.cancelRunning(isWanted)
    const others = await asked
    const taken = others.reduce((sum, each) => sum + each.taken, 0)
    return {
      waiting: Math.max(0, waiting - taken) + ownWaiting,
      running: others.reduce((sum, each) => sum + each.running, ownRunning),
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

  #isMeant(what: CancelTarget, event: Meant): boolean {
    return isMeant(what, event) && !(isTree(what) && this.#cancels.isRevived(event, what.id))
  }

  /** False if it was known. */
  #knows(n: number): boolean {
    if (n === 0 || this.#known.has(n)) return false
    this.#known.add(n)
    this.#lastN = Math.max(this.#lastN, n)
    for (const oldest of this.#known) {
      if (oldest > this.#lastN - LATE_MAX) break
      this.#known.delete(oldest)
    }
    return true
  }

  /** A dead letter of the event is replayed: what was taken back before does not hold it up. @param tx its replay @returns number of the note; 0: it needs none */
  async reviving(tx: Queryable, event: Revived): Promise<number> {
    const n = await noteRevival(tx, this.#parts.database().dialect, event)
    // Before the commit: its row may be read at once. A dead letter that stays one publishes nothing.
    if (n > 0) this.#revive(event)
    return n
  }

  /** The same for a dead letter that no database has. */
  async revive(event: Revived): Promise<void> {
    this.revived(event, await ownTransaction(this.#parts.database(), (tx) => this.reviving(tx, event)))
  }

  /** The replay is committed. */
  revived(event: Revived, n: number): void {
    if (!this.#knows(n)) return
    this.#revive(event)
    this.#parts.members?.doorbell.cancels()
  }

  #revive(event: Revived): void {
    this.#cancels.revive(event)
    this.#parts.hub.revive(event)
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

  /** Another process may have replayed some of these rows, or what has caused them: their notes are there as they are. */
  hearing(rows: readonly (StoredDelivery | MalformedRow)[]): Promise<void> | undefined {
    if (this.#parts.members === null || this.#cancels.isEmpty) return undefined
    const isDoubtful = rows.some((row) => !isMalformed(row) && this.#cancels.has(row.event, row.seq))
    return isDoubtful ? this.look() : undefined
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
      .query<Notice>('SELECT n, what, last_seq FROM heddle_cancel WHERE n > $1 ORDER BY n', [this.#lastN - LATE_MAX])
    const heard: (() => void)[] = []
    for (const { n, what: json, last_seq } of notices) {
      if (!this.#knows(Number(n))) continue
      const what = JSON.parse(json) as CancelNote
      if (isRevival(what)) this.#revive(what.revived)
      else {
        this.#note(what, Number(last_seq))
        heard.push(() => this.#hear(Number(n), what, Number(last_seq)))
      }
    }
    // What was replayed since goes on.
    for (const hear of heard) hear()
  }

  #hear(n: number, what: CancelTarget, lastSeq: number): void {
    const { hub, hand, members } = this.#parts
    const isOld = (event: HubEvent): boolean => isTree(what) || (event.seq > 0 && event.seq <= lastSeq)
    const settling = hand.settling((event) => isMeant(what, event))
    const { running } = hub.cancel(({ event }) => isOld(event) && this.#isMeant(what, event))
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
    // What was replayed since stays.
    await this.look()
    const taken = await ownTransaction(db, async (tx) => {
      const { rows } = await tx.execute<Notice>(
        `DELETE FROM heddle_cancel WHERE n <= $1 AND ${old} RETURNING n, what, last_seq`,
        [last],
      )
      const again: [CancelTarget, CancelledRows][] = []
      for (const json of new Set(rows.map(({ what }) => what))) {
        const what = JSON.parse(json) as CancelNote
        if (isRevival(what) || !isTree(what)) continue
        const isLate = (event: Revived): boolean => !this.#cancels.isRevived(event, what.id)
        const late = lateOf({ id: what.id, causedToo: true })
        again.push([late, await cancelLateRows(tx, db.dialect, late, caused.get(json) ?? [], isLate)])
      }
      return again
    })
    for (const [what, rows] of taken) if (rows.n > 0) await this.#taken(what, rows)
  }
}
