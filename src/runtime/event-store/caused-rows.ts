// The rows of events that an event has caused: conditions and indexes.
import { ANCESTOR_STEP, GENERATIONS_MAX } from '../../core/causality/ancestors.ts'

/** The envelope begins with a text: the events above the row, see event-columns.ts. */
const HAS_PARENT = `substr(envelope, 1, 2) = '["'`

/** One of them, the parent first; null where there are not so many. SQLite has an index of one value of a row, hence one for each. */
function ancestorSql(generation: number): string {
  const at = generation * ANCESTOR_STEP
  const length = ANCESTOR_STEP - 1
  // The blank before it spares most rows the rest.
  const isPlaced = generation === 0 ? '' : `substr(envelope, ${2 + at}, 1) = ' ' AND `
  return `CASE WHEN ${isPlaced}${HAS_PARENT} AND instr(substr(envelope, 3), '"') > ${at + length} THEN substr(envelope, ${3 + at}, ${length}) END`
}
const GENERATIONS = Array.from({ length: GENERATIONS_MAX }, (_, generation) => ancestorSql(generation))
/** All of them as an array. */
const LINEAGE = `string_to_array(split_part(envelope, '"', 2), ' ')`

/** $1: the id of an event. Without the indexes, `instr` spares most rows the rest. */
export const IS_CAUSED = {
  sqlite: `instr(envelope, $1) > 0 AND (${GENERATIONS.map((ancestor) => `${ancestor} = $1`).join(' OR ')})`,
  postgres: `${HAS_PARENT} AND ${LINEAGE} @> ARRAY[$1::text]`,
} as const

export const CAUSED_INDEXES = {
  sqlite: GENERATIONS.map((ancestor, generation) => ({
    name: `heddle_delivery_caused_${generation + 1}`,
    rows: `(${ancestor}) WHERE ${ancestor} IS NOT NULL`,
  })),
  postgres: [{ name: 'heddle_delivery_caused', rows: `USING gin ((${LINEAGE})) WHERE ${HAS_PARENT}` }],
} as const
