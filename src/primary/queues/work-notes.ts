// What each process has in work, for the others that share the database.
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import type { Rates } from './queue-rates.ts'

/** A delivery that a thread has. */
export interface Running {
  readonly event: string
  readonly group: string
  readonly id: string
  /** Number of its row; 0: it has none. */
  readonly seq: number
  readonly attempt: number
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
  readonly replica: string
  /** Null: the primary. */
  readonly lane: number | null
}

/** What a process has of one subscriber. */
export interface Work extends Rates {
  readonly event: string
  readonly group: string
  readonly running: number
  /** Those that wait for the next attempt in memory. */
  readonly retrying: number
  /** Of both, those with a row. */
  readonly inHand: number
}

export interface WorkNote {
  readonly work: readonly Work[]
  /** The oldest. */
  readonly running: readonly Running[]
}

/** What is older does not count, milliseconds: its process has ended, or stands still. */
const VALID_MS = 15_000

const DATABASE_MS = 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)'

/** Writes the note of a member, and deletes those of members that are gone. */
export async function writeNote(db: StoreDatabase, member: number, note: WorkNote): Promise<void> {
  await db.execute(
    `INSERT INTO heddle_working (member, at_ms, note) VALUES ($1, ${DATABASE_MS}, $2)
     ON CONFLICT (member) DO UPDATE SET at_ms = excluded.at_ms, note = excluded.note`,
    [member, JSON.stringify(note)],
  )
  await db.execute(
    'DELETE FROM heddle_working WHERE NOT EXISTS (SELECT 1 FROM heddle_member AS m WHERE m.id = heddle_working.member)',
  )
}

/** The notes of the other members. */
export async function readNotes(db: StoreDatabase, member: number): Promise<WorkNote[]> {
  const rows = await db.query<{ note: string }>(
    `SELECT w.note FROM heddle_working AS w JOIN heddle_member AS m ON m.id = w.member
     WHERE w.member <> $1 AND w.at_ms > ${DATABASE_MS} - ${VALID_MS}`,
    [member],
  )
  return rows.map(({ note }) => JSON.parse(note) as WorkNote)
}
