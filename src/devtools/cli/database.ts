// A database for a command: that of the application, or an empty one of its kind; and the types of its tables as a file of TypeScript.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { CommandError } from '../../core/config/command-line.ts'
import type { Settings } from '../../core/config/schema.ts'
import { activeTools, loadTool, toolNameOf } from '../../runtime/kernel/discover.ts'
import type { MigratingTool } from '../../stores/migrations/driver.ts'
import { migrate } from '../../stores/migrations/runner.ts'
import type { SqlDatabase } from '../../stores/sql/database.ts'
import { keyOf } from '../client/types.ts'
import { pascal } from '../words.ts'

/** How long a statement may take that makes or removes a database: a busy server takes its time, and nobody else waits. Milliseconds. */
const PATIENCE_MS = 3_600_000

/** What a command uses of the tool `db`. It has not booted: nothing is migrated by itself. */
export interface CommandDatabase extends SqlDatabase, MigratingTool, Pick<Tool, 'serve'>, AsyncDisposable {
  stop(): Promise<void>
}

/** The application's `db`, in this process alone. @throws CommandError where its implementation has no migrations */
export async function openDatabase(
  settings: Settings,
  log: (level: LogLevel, message: string) => void,
): Promise<CommandDatabase> {
  const folder = activeTools(settings.toolsDir, settings.tools).find((each) => toolNameOf(each) === 'db')
  if (folder === undefined) throw new CommandError('There is no tool db')
  const memory = new Map<string, SharedArrayBuffer>()
  const runtime: Partial<ToolRuntime> = {
    thread: { kind: 'primary' },
    settings: { ...settings, lanes: 1, rdbMinPool: 0 },
    env: () => undefined,
    log,
    context: () => undefined,
    callPrimary: async (method, args) => database.serve?.(method, args),
    sharedMemory: (name, byteLength) => {
      const known = memory.get(name) ?? new SharedArrayBuffer(byteLength)
      memory.set(name, known)
      return known
    },
    instrument: (target) => target,
    peer: () => undefined,
  }
  const database = (await loadTool(folder, () => runtime as ToolRuntime)) as object as CommandDatabase
  if (typeof database.migrating !== 'function') throw new CommandError(`The tool in ${folder.path} has no migrations`)
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.stop() })
}

/**
 * Runs `work` on an empty database of the same kind to which all migrations are applied, and removes it: on SQLite a temporary file, on PostgreSQL
 * a database of the same server, whose user must be allowed to create one.
 */
export async function onScratchDatabase<T>(
  settings: Settings,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  await using given = await openDatabase({ ...settings, rdbStatementTimeoutMs: PATIENCE_MS }, () => {})
  const onMigrated = async (own: Partial<Settings>): Promise<T> => {
    await using database = await openDatabase({ ...settings, ...own }, () => {})
    await database.migrating((driver) => migrate(driver, settings.domainsDir, () => {}))
    return await work(database)
  }
  if (given.dialect === 'sqlite') {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-types-'))
    return await onMigrated({ sqlitePath: join(folder, 'scratch.db') }).finally(() =>
      rm(folder, { recursive: true, force: true }),
    )
  }
  const name = `heddle_scratch_${randomBytes(6).toString('hex')}`
  await given.execute(`CREATE DATABASE ${name}`)
  return await onMigrated({ rdbDatabase: name }).finally(() =>
    given.execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  )
}

export interface TableColumn {
  name: string
  /** Of TypeScript, as a row of the tool has it. */
  type: string
  isNullable: boolean | 0 | 1
  /** An INSERT may leave it out, because it has a default. */
  hasDefault: boolean | 0 | 1
}

export interface Table {
  name: string
  columns: TableColumn[]
}

/** How a database tells its tables, and the columns of one. */
const CATALOGUE = {
  sqlite: {
    tables:
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    // An INTEGER PRIMARY KEY is the row id, which SQLite gives.
    columns: `SELECT name, type, "notnull" = 0 AND pk = 0 AS "isNullable",
       dflt_value IS NOT NULL OR hidden > 0 OR
         (pk > 0 AND lower(type) = 'integer' AND (SELECT max(pk) FROM pragma_table_xinfo($1)) = 1) AS "hasDefault"
     FROM pragma_table_xinfo($1)`,
  },
  postgres: {
    tables:
      "SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = CAST(current_schema() AS regnamespace) ORDER BY relname COLLATE \"C\"",
    columns: `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS "isNullable",
       atthasdef OR attidentity <> '' AS "hasDefault"
     FROM pg_attribute
     WHERE attrelid = CAST(CAST(quote_ident(current_schema()) || '.' || quote_ident($1) AS text) AS regclass) AND attnum > 0 AND NOT attisdropped
     ORDER BY attnum`,
  },
}

/** The tables of the migrated database, by name: without those of the runtime and of the database itself. */
export async function readTables(database: CommandDatabase): Promise<Table[]> {
  const asked = CATALOGUE[database.dialect]
  const names = await database.query<{ name: string }>(asked.tables)
  const own = names.filter(({ name }) => name !== '_migrations' && !name.startsWith('heddle_'))
  const tables: Table[] = []
  for (const { name } of own) {
    const columns = await database.query<TableColumn>(asked.columns, [name])
    tables.push({ name, columns: columns.map((column) => ({ ...column, type: typeOf(column.type) })) })
  }
  return tables
}

/** The first that fits names the type in TypeScript; the tool gives each so on both databases. */
const TYPES: readonly [RegExp, string][] = [
  [/\[\]$/, 'string'],
  [/^bool/i, 'boolean'],
  [/bytea|blob/i, 'Uint8Array'],
  [/interval|point/i, 'string'],
  [/int|serial/i, 'number'],
  // Every decimal of so many digits is a number.
  [/(?:numeric|decimal)\s*\(\s*(?:\d|1[0-5])\s*[,)]/i, 'number'],
  [/numeric|decimal/i, 'number | string'],
  [/real|floa|doub/i, 'number'],
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
