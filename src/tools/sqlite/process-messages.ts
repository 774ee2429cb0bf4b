import { deserialize, serialize } from 'node:v8'
import type { DbErrorKind, SqlValue } from '../../contracts/db.ts'
import { DbError } from '../../core/errors/db-error.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'

/** What a lane asks of a process for heavy statements, through the primary. */
export interface Order {
  /** `threadId` of the lane's thread: when it ends, so does what it has ordered. */
  readonly threadId: number
  /** A transaction that has begun; null: a statement by itself, or `begin`. */
  readonly session: number | null
  readonly action: 'run' | 'begin' | 'commit' | 'rollback'
  /** It takes the write lock. */
  readonly writes: boolean
  readonly sql?: string
  /** Packed. */
  readonly params?: string
}

/** The answer: JSON, because it travels between threads and processes. */
export interface Answer {
  readonly session?: number
  /** Packed. */
  readonly outcome?: string
  readonly error?: { readonly kind: DbErrorKind; readonly message: string }
}

// Values that JSON does not have, integers of 64 bits and bytes, arrive as they were.
const pack = (value: unknown): string => serialize(value).toString('base64')
const unpack = (packed: string): unknown => deserialize(Buffer.from(packed, 'base64'))

export const packParams = (params: readonly SqlValue[]): string => pack([...params])
export const unpackParams = (packed: string): unknown[] => unpack(packed) as unknown[]
export const packOutcome = (outcome: Outcome): string => pack(outcome)

/** @throws DbError of the answer */
export function outcomeOf(answer: Answer): Outcome {
  if (answer.error !== undefined) throw new DbError(answer.error.kind, answer.error.message)
  return answer.outcome === undefined ? { rowCount: 0, rows: [] } : (unpack(answer.outcome) as Outcome)
}

export const failed = (kind: DbErrorKind, message: string): Answer => ({ error: { kind, message } })
