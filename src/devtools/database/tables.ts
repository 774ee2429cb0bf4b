// The tables of a database, and their types as a file of TypeScript.

import { keyOf } from '../client/types.ts'
import { pascal } from '../words.ts'
import type { CommandDatabase } from './open.ts'

export interface TableColumn {
  name: string
  /** Of TypeScript, as a row of the tool has it. */
  type: string
  isNullable: boolean
  /** An INSERT may leave it out, because it has a default. */
  hasDefault: boolean
}

export interface Table {
  name: string
  columns: TableColumn[]
}

/** The tables of the migrated database, by name: without those of the runtime and of the database itself. */
export async function readTables(database: CommandDatabase): Promise<Table[]> {
  const names = await database.query<{ name: string }>(
    database.dialect === 'sqlite'
      ? "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
      : "SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = CAST(current_schema() AS regnamespace) ORDER BY relname COLLATE \"C\"",
  )
  const own = names.filter(({ name }) => name !== '_migrations' && !name.startsWith('heddle_'))
  const read = database.dialect === 'sqlite' ? sqliteColumns : postgresColumns
  const tables: Table[] = []
  for (const { name } of own) tables.push({ name, columns: await read(database, name) })
  return tables
}

interface SqliteColumn {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
  hidden: number
}

async function sqliteColumns(database: CommandDatabase, table: string): Promise<TableColumn[]> {
  const columns = await database.query<SqliteColumn>('SELECT * FROM pragma_table_xinfo($1)', [table])
  const keys = columns.filter(({ pk }) => pk > 0)
  return columns.map(({ name, type, notnull, dflt_value, pk, hidden }) => ({
    name,
    type: typeOf(type),
    isNullable: notnull === 0 && pk === 0,
    // An INTEGER PRIMARY KEY is the row id, which SQLite gives.
    hasDefault: dflt_value !== null || hidden > 0 || (pk > 0 && keys.length === 1 && /^integer$/i.test(type)),
  }))
}

interface PostgresColumn {
  name: string
  type: string
  is_nullable: boolean
  has_default: boolean
}

async function postgresColumns(database: CommandDatabase, table: string): Promise<TableColumn[]> {
  const columns = await database.query<PostgresColumn>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS is_nullable,
       atthasdef OR attidentity <> '' AS has_default
     FROM pg_attribute
     WHERE attrelid = CAST(CAST(quote_ident(current_schema()) || '.' || quote_ident($1) AS text) AS regclass) AND attnum > 0 AND NOT attisdropped
     ORDER BY attnum`,
    [table],
  )
  return columns.map(({ name, type, is_nullable, has_default }) => ({
    name,
    type: typeOf(type),
    isNullable: is_nullable,
    hasDefault: has_default,
  }))
}

/** The first that fits names the type in TypeScript; the tool gives each so on both databases. */
const TYPES: readonly [RegExp, string][] = [
  [/\[\]$/, 'string'],
  [/^bool/i, 'boolean'],
  [/bytea|blob/i, 'Uint8Array'],
  [/interval|point/i, 'string'],
  [/int|serial/i, 'number'],
  [/real|floa|doub|numeric|decimal/i, 'number'],
]

function typeOf(declared: string): string {
  // JSON, UUID, dates and times are text in a row.
  return declared === '' ? 'unknown' : (TYPES.find(([pattern]) => pattern.test(declared))?.[1] ?? 'string')
}

const HEAD = `// Written by \`heddle db types\` from the migrations: write it again instead of changing it.

/** What a SELECT gives, an INSERT takes and an UPDATE takes, where they differ; the same as ColumnType of Kysely. */
type Column<Select, Insert, Update = Insert> = {
  readonly __select__: Select
  readonly __insert__: Insert
  readonly __update__: Update
}
`

/** The file: two interfaces a table, its rows and what a query builder has to know, and one of all tables for \`kysely<Tables>(db)\`. */
export function typesText(tables: readonly Table[]): string {
  const usesColumn = tables.some(({ columns }) => columns.some(({ hasDefault }) => hasDefault))
  const head = usesColumn ? HEAD : `${HEAD.split('\n')[0]}\n`
  const all = tables.map(({ name }) => `  ${keyOf(name)}: ${interfaceName(name)}Table\n`).join('')
  return `${head}\n${tables.map(interfacesOf).join('\n')}\nexport interface Tables {\n${all}}\n`
}

function interfacesOf({ name, columns }: Table): string {
  const title = interfaceName(name)
  const rows = columns.map((column) => `  ${keyOf(column.name)}: ${selected(column)}\n`).join('')
  const table = columns.map((column) => `  ${keyOf(column.name)}: ${columnType(column)}\n`).join('')
  return `/** A row of \`${name}\`. */\nexport interface ${title} {\n${rows}}\n\nexport interface ${title}Table {\n${table}}\n`
}

const selected = ({ type, isNullable }: TableColumn): string => (isNullable ? `${type} | null` : type)

function columnType(column: TableColumn): string {
  const type = selected(column)
  return column.hasDefault ? `Column<${type}, ${type} | undefined, ${type}>` : type
}

/** `order_items` → `OrderItems` */
function interfaceName(table: string): string {
  const name = pascal(table)
  return /^[A-Za-z]/.test(name) ? name : `Table${name}`
}
