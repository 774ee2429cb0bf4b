import { keyOf } from '../client/types.ts'
import type { Table, TableColumn } from './table-types.ts'

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
  const name = table.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9]?)/g, (_, letter: string) => letter.toUpperCase())
  return /^[A-Za-z]/.test(name) ? name : `Table${name}`
}
