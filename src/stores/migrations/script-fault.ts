// The statement of a script that failed: found, shown, and how to fix it.
import { DbError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { shown, showPlace } from '../../core/errors/places.ts'

/** A migration, as far as its text says what it makes. */
interface MigrationSource {
  readonly id: string
  readonly sql: string
}

const AGAIN = 'nothing of it was applied. Correct the file and {again}.'

/** What applies the script again where nobody has said otherwise. */
export const again = { how: 'start again' }

type Fix = (found: RegExpExecArray, sources: readonly MigrationSource[]) => string

/** By the messages of SQLite and PostgreSQL. */
const FIXES: readonly [RegExp, Fix][] = [
  [
    /near "(?:AUTO_INCREMENT|AUTOINCREMENT)"/i,
    () =>
      `take a key that the application makes, id TEXT PRIMARY KEY; or INTEGER PRIMARY KEY AUTOINCREMENT on SQLite, BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY on PostgreSQL; ${AGAIN}`,
  ],
  [/near "`"|near "ENGINE"/i, () => `this is SQL of MySQL: write names without backticks, and no ENGINE; ${AGAIN}`],
  [
    /type "(\w+)" does not exist/,
    ([, type]) =>
      `PostgreSQL has no ${type}: write TIMESTAMPTZ for a time, BYTEA for bytes, TEXT for a text; both databases take TEXT, INTEGER and REAL; ${AGAIN}`,
  ],
  [
    /no such table: (?:main\.)?"?([\w.]+)|relation "([^"]+)" does not exist/,
    (found, sources) => missingTable(found[1] ?? found[2]!, sources),
  ],
  [
    /(?:table|index|view|relation|trigger) "?([\w.]+)"? already exists/,
    ([, name], sources) => {
      const maker = makerOf(name!, sources)
      const where = maker === undefined ? 'no migration makes it, so somebody has by hand' : `${maker.id} makes it, too`
      return `${where}: drop it, take another name, or write IF NOT EXISTS; ${AGAIN}`
    },
  ],
  [
    /no such column: "?([\w.]+)|column "?([\w.]+)"? (?:of relation \S+ )?does not exist|has no column named (\w+)/,
    () => `correct the name; a text stands in 'single quotes'; ${AGAIN}`,
  ],
  [
    /Cannot add a NOT NULL column|contains null values/,
    () => `rows are there already: give the column a DEFAULT, or fill it before it becomes NOT NULL; ${AGAIN}`,
  ],
  [
    /constraint failed|violates .* constraint|duplicate key|could not create unique index/i,
    () => `rows that are there already break it: fix them in this migration first; ${AGAIN}`,
  ],
]

/** How to go on after a script that has failed with this message. */
function scriptFix(message: string, sources: readonly MigrationSource[]): string {
  for (const [fault, fix] of FIXES) {
    const found = fault.exec(message)
    if (found !== null) return fix(found, sources)
  }
  return AGAIN
}

function missingTable(table: string, sources: readonly MigrationSource[]): string {
  const maker = makerOf(table, sources)
  if (maker === undefined) return `no migration makes the table ${table}: correct the name, or make it first; ${AGAIN}`
  return `${maker.id} makes the table ${table}, and has to come first: write \`-- depends: ${maker.id}\` at the top, or in the same domain a higher number; ${AGAIN}`
}

/** The migration that makes a table. */
export function makerOf(table: string, sources: readonly MigrationSource[]): MigrationSource | undefined {
  const name = table.replace(/^.*\./, '')
  const makes = new RegExp(
    `\\bCREATE\\s+(?:\\w+\\s+){1,4}(?:\\w+\\.)?["\`]?${name}["\`]?\\s*(?:\\(|AS\\b|ON\\b|USING\\b)`,
    'i',
  )
  return sources.find(({ sql }) => makes.test(sql))
}

/** A script that has failed, with the statement that did. */
export class ScriptFault extends DbError {
  /** Where in the script: the offset of a character. */
  readonly offset: number
  /** The statement as it stands there. */
  readonly statement: string

  constructor(error: DbError, offset: number, statement: string) {
    super(error.kind, error.message, { cause: error.cause })
    this.offset = offset
    this.statement = statement
  }
}

/** Characters of a statement that are shown. */
const STATEMENT_MAX = 200

/**
 * What a person needs to fix a script: the message, the file, the line with a mark under the column, the statement, and the fix.
 * @param what for example `Migration shop/001_orders failed and was rolled back`
 * @param sources all migrations, among which may be the one that has to come first
 */
export function scriptFaultText(
  what: string,
  thrown: unknown,
  { path, sql }: { path: string; sql: string },
  sources: readonly MigrationSource[] = [],
): string {
  const message = messageOf(thrown)
  const fix = `  Fix: ${scriptFix(message, sources).replace('{again}', again.how)}`
  if (!(thrown instanceof ScriptFault)) return [`${what}: ${message} (${shown(path)})`, fix].join('\n')
  const before = sql.slice(0, thrown.offset).split('\n')
  const place = { file: path, line: before.length, column: before.at(-1)!.length + 1 }
  const statement = thrown.statement.replace(/\s+/g, ' ')
  const cut = statement.length > STATEMENT_MAX ? `${statement.slice(0, STATEMENT_MAX)}…` : statement
  return [
    `${what}: ${message} in line ${place.line} (${shown(path)})`,
    ...showPlace(place).map((line) => `  ${line}`),
    `  statement: ${cut}`,
    fix,
  ].join('\n')
}
