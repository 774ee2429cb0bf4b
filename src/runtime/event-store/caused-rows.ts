// The rows of events that an event has caused.
import type { Queryable } from '../../contracts/db.ts'
import { ANCESTOR_STEP, GENERATIONS_MAX } from '../../core/causality/ancestors.ts'

/** The envelope begins with a text: the events above the row, see event-columns.ts. */
const HAS_PARENT = `substr(envelope, 1, 2) = '["'`

/** All of them as an array. */
const LINEAGE = `string_to_array(split_part(envelope, '"', 2), ' ')`
/** $1: the id of an event. */
export const IS_CAUSED_ON_SERVER = `${HAS_PARENT} AND ${LINEAGE} @> ARRAY[$1::text]`
export const CAUSED_INDEX = {
  name: 'heddle_delivery_caused',
  rows: `USING gin ((${LINEAGE})) WHERE ${HAS_PARENT}`,
} as const

/** Rows of a file that are looked at together. */
const PAGE = 2000
/** Places at which the id may stand. */
const PLACES = Array.from({ length: GENERATIONS_MAX }, (_, generation) => 3 + generation * ANCESTOR_STEP).join()
/** @param id the parameter with the id of an event */
export const isCausedOnFile = (id: string): string =>
  `${HAS_PARENT} AND instr(envelope, ${id}) IN (${PLACES}) AND instr(envelope, ${id}) < instr(substr(envelope, 3), '"')`
const FIND = `SELECT max(seq) AS last, json_group_array(seq) FILTER (WHERE ${isCausedOnFile('$1')}) AS found
  FROM (SELECT seq, envelope FROM heddle_delivery WHERE seq > $2 ORDER BY seq LIMIT +$3)`

/**
 * Looks at all rows of a file, a page at a time: SQLite has no index of several values of a row, and one for each generation would cost every event more
 * than a cancel now and then.
 * @param between resolves before the next page is read
 * @returns numbers of rows
 */
export async function findCaused(
  db: Pick<Queryable, 'queryOne'>,
  id: string,
  between: () => Promise<void>,
): Promise<number[]> {
  const seqs: number[] = []
  // Others are no publisher's: see ancestors.ts.
  if (id.length !== ANCESTOR_STEP - 1) return seqs
  for (let after = 0; ; await between()) {
    const page = await db.queryOne<{ last: number | null; found: string }>(FIND, [id, after, PAGE])
    if (page!.last === null) return seqs
    after = Number(page!.last)
    for (const seq of JSON.parse(page!.found) as number[]) seqs.push(seq)
  }
}
