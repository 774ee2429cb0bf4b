import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertFindings, fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'table-ownership'
const MIGRATIONS = {
  'users/migrations/001_create_users.sql': '-- people\nCREATE TABLE IF NOT EXISTS "Users" (id TEXT PRIMARY KEY);\n',
  'billing/migrations/001_create_invoices.sql': 'CREATE TABLE invoices (id TEXT PRIMARY KEY);\n',
}
const STRANGER =
  "//! error SQL of the domain 'billing' touches the table 'users' of the domain 'users' (users/migrations/001_create_users.sql:2)"

test("SQL that touches another domain's table is found at the line of the table", (t) => {
  const body = `await this.#db.query('SELECT * FROM users WHERE id = $1', [id]) ${STRANGER}
await this.#db.queryOne(\`
  SELECT i.id
  FROM invoices i
  JOIN public."users" u ON u.id = i.user_id ${STRANGER}
  WHERE u.id = \${id}
\`)
await this.#db.execute('UPDATE invoices SET paid = 1 ' +
  'FROM users WHERE users.id = user_id') ${STRANGER}
await this.#db.transaction(async (tx) => {
  await tx.execute(INSERT)
  await this.#remove(tx)
})
}
async #remove(tx) {
  await tx.execute(\`DELETE FROM \${TABLE}\`)`
  return assertFindings(t, RULE, {
    ...MIGRATIONS,
    'billing/plugins/pay.ts': `${plugin('Pay', body)}
const INSERT = 'INSERT INTO users (id) VALUES ($1)' ${STRANGER}
const TABLE = 'users' ${STRANGER}
`,
  })
})

test('a helper of the domain that takes the database by its type is checked too', (t) =>
  assertFindings(t, RULE, {
    ...MIGRATIONS,
    'billing/people.ts': `import type { Queryable, Tools } from '#heddle'
export const names = (db: Queryable) => db.query('SELECT name FROM users') ${STRANGER}
export function first({ query }: Pick<Tools['db'], 'query'>) {
  return query('SELECT name FROM users LIMIT 1') ${STRANGER}
}
`,
  }))

test('own tables, tables of nobody, names in strings and comments, and common table expressions are fine', async (t) => {
  const body = `await this.#db.query("SELECT 'users' FROM invoices -- FROM users")
await this.#db.query('SELECT * FROM sqlite_master /* JOIN users */')
await this.#db.query('WITH users AS (SELECT * FROM invoices) SELECT * FROM users')
await this.#db.query(statement)
await other.query('SELECT * FROM users')`
  const { lint } = await fixture(t, { ...MIGRATIONS, 'billing/plugins/pay.ts': plugin('Pay', body) })
  assert.deepEqual((await lint()).findings, [])
})

test('two domains that create one table are found at the second', (t) => {
  const second = "error the domain 'b' creates the table 'things' of the domain 'a' (a/migrations/001_x.sql:1)"
  return assertFindings(t, RULE, {
    'a/migrations/001_x.sql': 'CREATE TABLE things (id TEXT);\n',
    'b/migrations/001_x.sql': `\n\nCREATE TABLE main.[Things] (id TEXT); //! ${second}\n`,
    'c/migrations/001_x.sql': 'CREATE TEMP TABLE things (id TEXT);\n',
  })
})

test("a migration may refer to another domain's table and read it, and not change it", async (t) => {
  const { findings } = await fixture(t, {
    ...MIGRATIONS,
    'audit/migrations/001_fine.sql': `-- depends: users/001_users
CREATE TABLE audit (user_id TEXT REFERENCES users (id));
INSERT INTO audit SELECT id FROM users;
`,
    'audit/migrations/002_wrong.sql': `ALTER TABLE users ADD COLUMN audited TEXT;
CREATE INDEX users_audited ON users (audited);
CREATE TRIGGER audit_users AFTER INSERT ON audit BEGIN UPDATE users SET audited = 1; END;
CREATE FUNCTION purge() RETURNS void AS $$
  DELETE FROM users
$$ LANGUAGE sql;
DROP TABLE public."users";
`,
  })
  const found = await findings(RULE)
  assert.deepEqual(
    found.map((finding) => finding.slice(0, finding.indexOf(' '))),
    [1, 2, 3, 5, 7].map((line) => `audit/migrations/002_wrong.sql:${line}`),
  )
})

test('a table that its domain drops or renames is its own no longer, a renamed one is', (t) => {
  const renamed = "error SQL of the domain 'b' touches the table 'rows' of the domain 'a' (a/migrations/002_a.sql:4)"
  return assertFindings(t, RULE, {
    'a/migrations/001_a.sql': 'CREATE TABLE rows (id TEXT);\n',
    'a/migrations/002_a.sql':
      'CREATE TABLE next (id TEXT);\nINSERT INTO next SELECT id FROM rows;\nDROP TABLE rows;\nALTER TABLE next RENAME TO rows;\n',
    'b/migrations/001_b.sql': 'CREATE TABLE next (id TEXT);\nALTER TABLE next RENAME TO kept;\n',
    'b/plugins/b.ts': plugin(
      'B',
      `await this.#db.query('SELECT * FROM next, kept')
await this.#db.query('SELECT * FROM rows') //! ${renamed}`,
    ),
  })
})

const ofRuntime = (table: string): string =>
  `//! error SQL of the domain 'billing' touches the table '${table}' of the runtime: names with heddle_ are its own`

test('no plugin and no migration touches a table of the runtime, or makes one that is named like one', (t) => {
  const body = `await this.#db.query('SELECT id FROM heddle_event') ${ofRuntime('heddle_event')}
await this.#db.transaction((tx) => tx.execute('DELETE FROM public.heddle_dead')) ${ofRuntime('heddle_dead')}
await this.#db.query('SELECT 1 FROM heddles')`
  return assertFindings(t, RULE, {
    'billing/migrations/001_log.sql': `CREATE TABLE heddle_invoices (id TEXT PRIMARY KEY); ${ofRuntime('heddle_invoices')}
CREATE TABLE heddles (id TEXT);
`,
    'billing/plugins/pay.ts': plugin('Pay', body),
  })
})

test('what sql`…` composes is SQL, wherever it is put together', (t) => {
  const body = `const mine = this.#db.sql\`SELECT id FROM invoices WHERE user = \${'users'}\`
await this.#db.query(mine)
const theirs = this.#db.sql\`EXISTS (SELECT 1 FROM users WHERE id = \${1})\` ${STRANGER}
await this.#db.query(this.#db.sql\`SELECT id FROM invoices WHERE \${theirs}\`)
const { sql: tag } = this.#db
const filters = [tag\`id IN (SELECT id FROM users)\`] ${STRANGER}
await this.#db.transaction(async (tx) => { await tx.execute(sql\`DELETE FROM \${sql.id('users')}\`) }) ${STRANGER}
await this.#db.execute(sql\`INSERT INTO \${sql.raw('heddle_event')} \${sql.rows(['id'], [])}\`) ${ofRuntime('heddle_event')}
String.raw\`SELECT id FROM users\``
  return assertFindings(t, RULE, {
    ...MIGRATIONS,
    'billing/plugins/pay.ts': plugin('Pay', body).replace('import { Plugin', 'import { Plugin, sql'),
  })
})
