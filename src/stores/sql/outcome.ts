import type { Row } from '../../contracts/db.ts'

/** The result of a statement. */
export interface Outcome {
  /** Rows changed, or for a statement that returns rows their number. */
  rowCount: number
  rows: Row[]
}
