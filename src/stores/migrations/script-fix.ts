/** A migration, as far as its text says what it makes. */
export interface MigrationSource {
  readonly id: string
  readonly sql: string
}

const AGAIN = 'nothing of it was applied. Correct the file; npm run dev takes it when it is saved, else start again.'

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
export function scriptFix(message: string, sources: readonly MigrationSource[]): string {
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
