import { EVENT_COLUMNS, PLAIN_COLUMNS } from './event-rows.ts'
import { NO_PROCESS, ownerExpression } from './ownership.ts'

/** The INSERTs of one database: few sizes, so that each is prepared once. */
export interface InsertTexts {
  /** How many rows the next INSERT has, of so many that are left. With more than are left, it is filled up with rows of nulls. */
  sizeFor(left: number): number
  textOf(rows: number): string
  /** For events without a key, a delay and a time to live: only the first five columns are given. Null: there is none. */
  plainTextOf: ((rows: number) => string) | null
}

const COLUMNS = EVENT_COLUMNS.join(', ')
/** Types of the columns on PostgreSQL. */
const SERVER_TYPES = ['bigint', 'text', 'text', 'text', 'text', 'text', 'bigint', 'bigint'] as const

/** Rows of one INSERT at most. */
export const FILE_MAX_ROWS = 32
export const SERVER_MAX_ROWS = 256

const FILE_SIZES = [FILE_MAX_ROWS, 8, 1]
const FILE_TEXTS = textsOf(FILE_SIZES, (rows) => `INSERT INTO heddle_event (${COLUMNS}) VALUES ${rows}`)

const PLAIN_FILE_TEXTS = new Map(
  FILE_SIZES.map((size) => {
    const rows = Array.from({ length: size }, (_, row) => {
      const at = row * PLAIN_COLUMNS
      return `($${at + 1}, $${at + 2}, $${at + 3}, $${at + 4}, $${at + 5}, NULL, 0, 0)`
    })
    return [size, `INSERT INTO heddle_event (${COLUMNS}) VALUES ${rows.join(', ')}`]
  }),
)

export const FILE_INSERTS: InsertTexts = {
  sizeFor: (left) => FILE_SIZES.find((size) => size <= left)!,
  textOf: (rows) => FILE_TEXTS.get(rows)!,
  plainTextOf: (rows) => PLAIN_FILE_TEXTS.get(rows)!,
}

const SERVER_SIZES = [1, 4, 16, 64, 128, SERVER_MAX_ROWS]

/**
 * Each statement is a way there and back: as few as can be.
 * The column `owner` takes no null, so nothing is stored for a process that is not the owner any more.
 * @param order of events that this process delivers itself; null: those with a key belong to no process, and each statement gets the next number
 */
export function serverInserts(epoch: number, order: number | null): InsertTexts {
  const own = ownerExpression(epoch)
  // A query without a reference to the row is run once.
  const placement =
    order === null
      ? `CASE WHEN key IS NULL THEN ${own} ELSE ${own} * ${NO_PROCESS} END, (SELECT nextval('heddle_order'))`
      : `${own}, ${order}`
  const texts = textsOf(
    SERVER_SIZES,
    (rows) =>
      `INSERT INTO heddle_event (owner, ord, ${COLUMNS}) SELECT ${placement}, row.*
       FROM (VALUES ${rows}) AS row (${COLUMNS}) WHERE seq IS NOT NULL`,
    SERVER_TYPES,
  )
  return {
    sizeFor: (left) => SERVER_SIZES.find((size) => size >= left) ?? SERVER_MAX_ROWS,
    textOf: (rows) => texts.get(rows)!,
    plainTextOf: null,
  }
}

/** @param types of the columns, for the first row: a list of values has no table to take them from */
function textsOf(
  sizes: readonly number[],
  statementOf: (rows: string) => string,
  types?: readonly string[],
): Map<number, string> {
  const width = EVENT_COLUMNS.length
  const placeOf = (row: number, column: number): string =>
    `$${row * width + column + 1}${row === 0 && types !== undefined ? `::${types[column]}` : ''}`
  const rowOf = (row: number): string => `(${EVENT_COLUMNS.map((_, column) => placeOf(row, column)).join(', ')})`
  return new Map(
    sizes.map((size) => [size, statementOf(Array.from({ length: size }, (_, row) => rowOf(row)).join(', '))]),
  )
}
