import type { Row } from '../../../src/core/config/kinds.ts'
import { settingKey, VARIABLES } from '../../../src/core/config/schema.ts'

export const TABLE_START = '<!-- The table is generated: UPDATE_DOCS=1 npm test docs -->'
export const TABLE_END = '<!-- end of the table -->'

/** Checked here, and read from the environment by the library that it is for: the exporter of OpenTelemetry. */
export const READ_BY_LIBRARIES: ReadonlySet<string> = new Set(['OTEL_EXPORTER_OTLP_HEADERS'])

/** Read by the configuration itself: defaults of others hang on it. */
export const ONLY_FOR_DEFAULTS: ReadonlySet<string> = new Set(['NODE_APP_INSTANCE', 'SYSTEM_DOMAIN'])

/** Defaults that a value cannot show: those that are computed, and those that differ from machine to machine. */
export const TOLD_DEFAULTS: Readonly<Record<string, string>> = {
  LANES: 'available cores / `PROCESSES` − 1, at least 1; `npm run dev`: at most 2',
  RDB_MIN_POOL: '2, or `RDB_MAX_POOL` if that is less',
  AUTH_SECRET_KEY: 'random on a loopback host, else required',
  AUTH_HASH_THREADS: 'available cores, at most 4',
  LOG_FORMAT: '`pretty` on a terminal and with `npm run dev`, else `json`',
  HISTORY_PATH: '`history.db` beside `SQLITE_PATH`',
  HISTORY_SAMPLE: '1; with `NODE_ENV=production` 0.01',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '512, or `OTEL_BSP_MAX_QUEUE_SIZE` if that is less',
  SCHEDULER_ENABLED: '`true`; `false` if `NODE_APP_INSTANCE` is set to a number other than 0',
  REPLICA_ID: 'host name `:` port (port 0: process id), and `:` `NODE_APP_INSTANCE` if that is set',
  TOOLS_DIR: '`src/tools` of the runtime',
}

/** The table of every variable, a line each, in the order of the schema, aligned as the formatter wants it. */
export function variablesTable(): string {
  const rows = Object.entries(VARIABLES).map(([name, row]: [string, Row<unknown>]) => [
    `\`${name}\``,
    defaultOf(name, row),
    row.values,
    row.secret ? `**Secret.** ${row.effect}` : row.effect,
  ])
  const cells = [['variable', 'default', 'values', 'effect'], ...rows]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => row[column]!.length)))
  const lines = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)))
  lines.splice(
    1,
    0,
    widths.map((width) => '-'.repeat(width)),
  )
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
}

function defaultOf(name: string, row: Row<unknown>): string {
  const value = row.default
  if (TOLD_DEFAULTS[name] !== undefined) return TOLD_DEFAULTS[name]
  if (typeof value === 'function') throw new Error(`The default of ${name} is computed: tell it in TOLD_DEFAULTS`)
  if (value === undefined) return 'none'
  return String(value) === '' ? 'empty' : `\`${String(value)}\``
}

/** True when a source uses a variable: as a setting, or by its own name (a plugin asks the tool `config` for it). */
export function mentions(source: string, name: string): boolean {
  return new RegExp(`\\b${settingKey(name)}\\b|'${name}'`).test(source)
}
