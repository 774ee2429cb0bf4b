// Finds rows that became visible after their group was read past them.
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { keyIn } from '../../runtime/event-store/event-columns.ts'
import type { Horizon } from './horizon.ts'
import type { Reader } from './reader.ts'
import type { Slots } from './slots.ts'

/** New rows behind the cursors, at a new place and at an old one, and the groups with unread rows. For `+ 0` see PAGE in server-store.ts. */
const LATE = `SELECT d.grp, d.slot, d.seq, coalesce(d.place, d.seq) AS place, d.key FROM unnest($2::int[], $3::bigint[]) AS c (grp, after)
    JOIN heddle_delivery AS d ON d.grp = c.grp AND coalesce(d.place, d.seq) <= c.after AND coalesce(d.place, d.seq) > $1::bigint WHERE d.due_ms = 0
  UNION ALL
  SELECT d.grp, d.slot, d.seq, d.place, d.key FROM unnest($2::int[], $3::bigint[]) AS c (grp, after)
    JOIN heddle_delivery AS d ON d.grp = c.grp AND d.seq > $1::bigint AND d.place <= c.after AND d.place <= $1::bigint
    WHERE d.place IS NOT NULL AND d.due_ms + 0 = 0
  UNION ALL
  SELECT c.grp, 0, 0, 0, NULL FROM unnest($2::int[], $3::bigint[]) AS c (grp, after) WHERE EXISTS (
    SELECT 1 FROM heddle_delivery AS d WHERE d.grp = c.grp AND coalesce(d.place, d.seq) > c.after AND d.due_ms = 0)`

interface LateRow {
  grp: number
  slot: number
  /** 0: the group has unread rows. */
  seq: number
  place: number
  key: string | null
}

export interface LateRowsParts {
  database: () => StoreDatabase
  horizon: Horizon
  reader: Reader
  slots: Slots
  isInHand: (seq: number) => boolean
}

/** Looks for late rows of idle groups: reading pages would not find them. */
export class LateRows {
  readonly #parts: LateRowsParts
  /** Rows up to this `seq` are not looked at again. */
  #seen = 0
  /** Rows that left the hand during the search. */
  readonly #left = new Set<number>()
  #isLooking = false

  constructor(parts: LateRowsParts) {
    this.#parts = parts
  }

  /** The outcomes of these rows are committed. */
  left(seqs: readonly number[]): void {
    if (this.#isLooking) for (const seq of seqs) this.#left.add(seq)
  }

  /** Must not run while a page is read. */
  async look(): Promise<void> {
    const { database, reader, horizon } = this.#parts
    const decided = await horizon.refresh()
    const cursors = [...reader.cursors]
    this.#isLooking = true
    try {
      const rows = await database().query<LateRow>(LATE, [
        this.#seen,
        `{${cursors.map(({ group }) => group.id).join(',')}}`,
        `{${cursors.map(({ after }) => after).join(',')}}`,
      ])
      for (const row of rows) this.#found(row)
    } finally {
      this.#isLooking = false
      this.#left.clear()
    }
    this.#seen = decided
  }

  #found({ grp, slot, seq: number, place, key: column }: LateRow): void {
    const { reader, slots, isInHand } = this.#parts
    const [group, seq] = [Number(grp), Number(number)]
    if (seq === 0) return reader.rangGroup(group)
    if (isInHand(seq) || this.#left.has(seq) || slots.owned(group, Number(slot))?.state !== 'held') return
    reader.late(group, Number(place), keyIn(column))
  }
}
