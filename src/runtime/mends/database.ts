import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { HeddleError } from '../../core/errors/catalogue.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { DRAFT } from '../../stores/migrations/discover.ts'
import { makerOf } from '../../stores/migrations/script-mend.ts'

const NEW_TABLE = 'npm run new -- migration <domain>/<name>'

type Mend = (found: RegExpExecArray, domainsDirs: readonly string[]) => string

/** By the messages of SQLite and PostgreSQL. */
const MENDS: readonly [RegExp, Mend][] = [
  [
    /no such table: (?:main\.)?"?([\w.]+)|relation "([^"]+)" does not exist/,
    (found, domainsDirs) => missingTable(found[1] ?? found[2]!, domainsDirs),
  ],
  [
    /no such column: "?([\w.]+)"?|column "?([\w.]+)"? (?:of relation \S+ )?does not exist|has no column named (\w+)/,
    (found) =>
      `correct the name ${found.slice(1).find(Boolean)}, or add the column by a migration (${NEW_TABLE}); a text stands in 'single quotes'`,
  ],
  [
    /more than one statement|cannot insert multiple commands/,
    () => `one statement a call: several go into db.transaction, tables into a migration (${NEW_TABLE})`,
  ],
  [/has 0 parameter\(s\), but/, () => 'write $1, $2, … into the statement, without quotes'],
]

/** The mend of a database error; undefined when there is none that would help. */
export function databaseMend(error: HeddleError, domainsDirs: readonly string[]): string | undefined {
  if (!(error instanceof DbError)) return undefined
  for (const [fault, mend] of MENDS) {
    const found = fault.exec(error.message)
    if (found !== null) return mend(found, domainsDirs)
  }
  if (error.kind !== 'unique_violation') return undefined
  return "catch it and answer: if (error instanceof DbError && error.kind === 'unique_violation') throw new HttpError(409, …)"
}

/** Tables that were missing before: a request that fails again and again reads the migrations once. */
const missing = new Map<string, { mend: string; atMs: number }>()
const MISSING_MAX = 100
/** After this time the migrations are read again, milliseconds. */
const MISSING_KEEP_MS = 5000

function missingTable(table: string, domainsDirs: readonly string[]): string {
  // Whoever removes all tables removes the runtime's own, which it makes at its start.
  if (/^(?:\w+\.)?(?:heddle_|_migrations$)/.test(table))
    return `the runtime makes the table ${table} when it starts, and somebody has removed it since: start the process again`
  const known = missing.get(table)
  if (known !== undefined && performance.now() - known.atMs < MISSING_KEEP_MS) return known.mend
  const maker = makerOf(table, domainsDirs.flatMap(migrationsIn))
  const mend =
    maker === undefined
      ? `no applied migration makes the table ${table}: write one (${NEW_TABLE}), or apply what is pending (DB_AUTO_MIGRATE=true npm start -- --boot-tool db)`
      : `${maker.id} makes the table ${table} and is not applied to this database: ${DRAFT.test(maker.sql) ? 'remove its line `-- heddle: draft`, or ' : ''}apply it (npm run migrate), and read there why it fails, if it does`
  if (missing.size >= MISSING_MAX) missing.clear()
  missing.set(table, { mend, atMs: performance.now() })
  return mend
}

/** Those of one folder of domains, without a check: the runner of the migrations says what is wrong with them. */
function migrationsIn(root: string): { id: string; sql: string }[] {
  return namesIn(root).flatMap((domain) => {
    const folder = join(root, domain, 'migrations')
    return namesIn(folder)
      .filter((name) => name.endsWith('.sql') && !name.endsWith('.down.sql'))
      .map((name) => ({ id: `${domain}/${basename(name, '.sql')}`, sql: readFileSync(join(folder, name), 'utf8') }))
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    // Not every domain has migrations.
    return []
  }
}
