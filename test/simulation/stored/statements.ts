/** Statements for PostgreSQL as SQLite takes them. What it cannot run at all is run in server.ts. */
import type { SqlValue } from '../../../src/contracts/db.ts'
import { textsOf } from '../../support/text-array.ts'

export interface Translated {
  readonly text: string
  /** Numbers of the parameters that are arrays. */
  readonly arrays: ReadonlySet<number>
}

const ARRAY = /\$(\d+)::(?:int|bigint|text)\[\]/g

/** Rules from the text for a server to one that means the same to SQLite, in this order. */
const RULES: readonly (readonly [RegExp, string | ((...found: string[]) => string)])[] = [
  // Without a condition SQLite takes ON CONFLICT for one of a join.
  [/(json_to_recordset\(\$\d+::json\) AS \w+ \([^)]*\))(\s+ON CONFLICT)/g, '$1 WHERE true$2'],
  // Lists side by side, as a table.
  [
    /unnest\(([^)]*)\)(?: WITH ORDINALITY)? AS (\w+) \(([^)]*)\)/g,
    (_, lists, name, columns) => tableOf(lists!, name!, columns!),
  ],
  [
    /json_to_recordset\((\$\d+)::json\) AS (\w+) \(([^)]*)\)/g,
    (_, list, name, columns) => recordsOf(list!, name!, columns!),
  ],
  [/FROM json_array_elements_text\((\$\d+)::json\) AS (\w+) \(value\)/g, 'FROM json_each($1) AS $2'],
  // Without a condition SQLite takes ON CONFLICT for one of a join.
  [/FROM json_array_elements_text\((\$\d+)::json\) ON CONFLICT/g, 'FROM json_each($1) WHERE true ON CONFLICT'],
  [/CAST\(([^()]+) AS json\) ->> ('\*'|\w+\.grp)/g, `json_extract($1, '$."' || $2 || '"')`],
  [/FROM json_array_elements_text\((\$\d+)::json\)(?= ORDER BY)/g, 'FROM json_each($1)'],
  // The events above a row.
  [
    /string_to_array\(split_part\(envelope, '"', 2\), ' '\) @> ARRAY\[(\$\d+)::text\]/g,
    `instr(' ' || substr(envelope, 3, instr(substr(envelope, 3), '"') - 1) || ' ', ' ' || $1 || ' ') > 0`,
  ],
  [/USING gin \(\(string_to_array\(.*?, ' '\)\)\)/g, '(envelope)'],
  [/= ANY\((\$\d+)::(?:int|bigint|text)\[\]\)/g, 'IN (SELECT value FROM json_each($1))'],
  [/<> ALL \((\$\d+)::bigint\[\]\)/g, 'NOT IN (SELECT value FROM json_each($1))'],
  // The rows that a subquery would find for each row before it.
  [
    /CROSS JOIN LATERAL \(\s*(SELECT f\.seq FROM .*)\) AS first\b/gs,
    'JOIN heddle_delivery AS first ON first.seq IN ($1)',
  ],
  [
    /CROSS JOIN LATERAL \(\s*SELECT [\w, ]+ FROM heddle_delivery WHERE (.*?)\) AS (\w+)/gs,
    'JOIN heddle_delivery AS $2 ON $2.seq IN (SELECT seq FROM heddle_delivery WHERE $1)',
  ],
  // There the columns of the changed table alone are returned.
  [/RETURNING d\.(\w+), d\.(\w+)/g, 'RETURNING $1, $2'],
  [/::[a-z]+(?:\[\])?/g, ''],
  [/CAST\(extract\(epoch FROM clock_timestamp\(\)\) \* 1000 AS BIGINT\)/g, 'clock_timestamp()'],
  [/clock_timestamp\(\) \+ interval '(\d+) s'/g, 'clock_timestamp() + $1000'],
  [/ FOR (?:SHARE|UPDATE)(?: OF \w+)?/g, ''],
  [/SELECT json_array_elements_text\((\$\d+)\)/g, 'SELECT value FROM json_each($1)'],
  [
    /SELECT (\$\d+), generate_series\(0, (\d+)\)/g,
    (_, first, last) => `SELECT ${first}, value FROM ${seriesTo(last!)}`,
  ],
  [/to_regclass\(name\)/g, '(SELECT m.name FROM sqlite_master AS m WHERE m.name = made.name)'],
  [/\bgreatest\(/g, 'max('],
  // Arms of a union stand alone there.
  [/(^|UNION ALL |FROM \()\(SELECT/g, '$1SELECT * FROM (SELECT'],
  [/(\w+ \(grp\) AS \(\s*)\((SELECT min\(grp\) [^()]*)\)/g, '$1$2'],
  [/pg_current_snapshot\(\) AS s/g, '(SELECT 0) AS s'],
  [/pg_snapshot_xmin\(s\)/g, 'pg_snapshot_xmin()'],
  [/\bjson_build_array\(/g, 'json_array('],
  // Tables.
  [/(?:BIGINT|INTEGER) GENERATED (?:ALWAYS|BY DEFAULT) AS IDENTITY PRIMARY KEY/g, 'INTEGER PRIMARY KEY AUTOINCREMENT'],
  [/seq BIGINT PRIMARY KEY DEFAULT nextval\('heddle_delivery_seq'\)/g, 'seq BIGINT NOT NULL PRIMARY KEY'],
  [/^SELECT i\.indisvalid .*$/gs, 'SELECT 1 AS is_valid'],
  [/^CREATE SEQUENCE IF NOT EXISTS (\w+)$/g, 'CREATE TABLE IF NOT EXISTS $1 (value)'],
]

const series = (last: number): string => JSON.stringify(Array.from({ length: last + 1 }, (_, n) => n))

// Without a condition SQLite takes ON CONFLICT for one of a join.
const seriesTo = (last: string): string => `json_each('${series(Number(last))}') WHERE true`

function tableOf(lists: string, name: string, columns: string): string {
  const params = lists.split(',').map((list) => list.trim().split('::')[0]!)
  const names = columns.split(',').map((column) => column.trim())
  // With one name more than lists, the last is the position.
  const itemOf = (n: number): string =>
    n === params.length ? 'l.key' : `json_extract(${params[n]}, '$[' || l.key || ']')`
  const selected = names.map((column, n) => `${n === 0 ? 'l.value' : itemOf(n)} AS ${column}`).join(', ')
  return `(SELECT ${selected} FROM json_each(${params[0]}) AS l) AS ${name}`
}

function recordsOf(list: string, name: string, columns: string): string {
  const names = columns.split(',').map((column) => column.trim().split(' ')[0]!)
  const selected = names.map((column) => `json_extract(value, '$.${column}') AS ${column}`).join(', ')
  return `(SELECT ${selected} FROM json_each(${list})) AS ${name}`
}

export function translated(sql: string): Translated {
  const arrays = new Set([...sql.matchAll(ARRAY)].map(([, number]) => Number(number)))
  let text = sql
  for (const [found, instead] of RULES) text = text.replace(found, instead as string)
  return { text, arrays }
}

/** As JSON: numbers come as text, texts in the binary form of `textArray`. */
function listOf(array: SqlValue): string {
  return Buffer.isBuffer(array) ? JSON.stringify(textsOf(array)) : `[${String(array).slice(1, -1)}]`
}

/** Parameters by name; a list is JSON to SQLite. */
export function named({ arrays }: Translated, params: readonly SqlValue[]): Record<string, unknown> {
  return Object.fromEntries(
    params.map((value, at) => [
      String(at + 1),
      arrays.has(at + 1) ? listOf(value) : typeof value === 'boolean' ? Number(value) : value,
    ]),
  )
}
