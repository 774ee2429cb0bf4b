import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Row } from '../../../src/core/config/kinds.ts'
import { settingKey, VARIABLES } from '../../../src/core/config/schema.ts'
import { ROOT, sourcesIn } from '../../rooms/docs/sources.ts'

const TABLE_START = '<!-- The table is generated: UPDATE_DOCS=1 npm test docs -->'
const TABLE_END = '<!-- end of the table -->'

/** Checked here, and read from the environment by the library that it is for: the exporter of OpenTelemetry. */
const READ_BY_LIBRARIES: ReadonlySet<string> = new Set(['OTEL_EXPORTER_OTLP_HEADERS'])

/** Read by the configuration itself: defaults of others hang on it. */
const ONLY_FOR_DEFAULTS: ReadonlySet<string> = new Set(['SYSTEM_DOMAIN'])

/** Defaults that a value cannot show: those that are computed, and those that differ from machine to machine. */
const TOLD_DEFAULTS: Readonly<Record<string, string>> = {
  LANES: 'available cores / `PROCESSES` − 1, at least 1; `npm run dev`: at most 2',
  RDB_MIN_POOL: '2, or `RDB_MAX_POOL` if that is less',
  AUTH_SECRET_KEY: 'random on a loopback host, else required',
  AUTH_HASH_THREADS: 'available cores, at most 4',
  LOG_FORMAT: '`pretty` on a terminal and with `npm run dev`, else `json`',
  HEDDLE_RELEASE: 'the first 12 digits of the commit in `.git`, here or above; none without it',
  HISTORY_PATH: '`history.db` beside `SQLITE_PATH`',
  HISTORY_SAMPLE: '1; with `NODE_ENV=production` 0.01',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '512, or `OTEL_BSP_MAX_QUEUE_SIZE` if that is less',
  SCHEDULER_ENABLED: '`true`; `false` if `NODE_APP_INSTANCE` is set to a number other than 0',
  REPLICA_ID: 'host name `:` port (port 0: process id), and `:` `NODE_APP_INSTANCE` if that is set',
  TOOLS_DIR: '`src/tools` of the runtime',
}

const SECRET = '**Secret.** '

const PAGE = join(ROOT, 'src/core/config/README.md')

test('the page of variables holds the table that the schema gives', () => {
  const page = readFileSync(PAGE, 'utf8')
  const [before, rest, ...more] = page.split(TABLE_START)
  const [, after, ...evenMore] = (rest ?? '').split(TABLE_END)
  assert.ok(after !== undefined && more.length + evenMore.length === 0, `${PAGE} has lost the marks of its table`)
  const fresh = `${before}${TABLE_START}\n\n${variablesTable(page)}\n\n${TABLE_END}${after}`
  if (process.env.UPDATE_DOCS === '1') writeFileSync(PAGE, fresh)
  else assert.equal(page, fresh, 'src/core/config/README.md is not up to date: run UPDATE_DOCS=1 npm test docs')
})

test('the page says of each variable what it changes, in a sentence', () => {
  const effects = effectsOf(readFileSync(PAGE, 'utf8'))
  for (const name of Object.keys(VARIABLES)) assert.match(effects.get(name) ?? '', /^\S.{10,}[.…]$/, name)
})

test('each default that the page tells in words is one that it could not show', () => {
  for (const name of Object.keys(TOLD_DEFAULTS)) {
    const row = VARIABLES[name as keyof typeof VARIABLES]
    const isShowable = typeof row?.default !== 'function' && !['AUTH_SECRET_KEY', 'TOOLS_DIR'].includes(name)
    assert.ok(!isShowable, `${name} has a plain default: the page can show it`)
  }
})

test('each variable is read by something, and not by the configuration alone', () => {
  const sources = [...sourcesIn('src'), ...sourcesIn('domains'), ...sourcesIn('workers')]
  const readers = sources.filter(([path]) => !path.startsWith(join('src', 'core', 'config')))
  for (const name of Object.keys(VARIABLES)) {
    const isRead = readers.some(([, text]) => mentions(text, name))
    assert.equal(isRead, !ONLY_FOR_DEFAULTS.has(name) && !READ_BY_LIBRARIES.has(name), name)
  }
})

/** What the page says of each variable: the last cell of its line. */
function effectsOf(page: string): Map<string, string> {
  const lines = page.matchAll(/^\| `(\w+)` +\|.*\| ([^|]*?) *\|$/gm)
  return new Map([...lines].map(([, name, effect]) => [name!, effect!.replace(SECRET, '')]))
}

/** The table of every variable, a line each, in the order of the schema, aligned as the formatter wants it. What each changes is as the page has it. */
function variablesTable(page: string): string {
  const effects = effectsOf(page)
  const rows = Object.entries(VARIABLES).map(([name, row]: [string, Row<unknown>]) => [
    `\`${name}\``,
    defaultOf(name, row),
    row.wanted.replaceAll('|', '\\|'),
    (row.secret ? SECRET : '') + (effects.get(name) ?? ''),
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
function mentions(source: string, name: string): boolean {
  return new RegExp(`\\b${settingKey(name)}\\b|'${name}'`).test(source)
}
