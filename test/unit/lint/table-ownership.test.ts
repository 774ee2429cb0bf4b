import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'table-ownership'
const MIGRATIONS = {
  'users/migrations/001_create_users.sql': '-- people\nCREATE TABLE IF NOT EXISTS "Users" (id TEXT PRIMARY KEY);\n',
  'billing/migrations/001_create_invoices.sql': 'CREATE TABLE invoices (id TEXT PRIMARY KEY);\n',
}
const STRANGER =
  "SQL of the domain 'billing' touches the table 'users' of the domain 'users' (users/migrations/001_create_users.sql:2)"

test("SQL that touches another domain's table is found at the line of the table", async (t) => {
  const body = `await this.#db.query('SELECT * FROM users WHERE id = $1', [id])
await this.#db.queryOne(\`
  SELECT i.id
  FROM invoices i
  JOIN public."users" u ON u.id = i.user_id
  WHERE u.id = \${id}
\`)
await this.#db.execute('UPDATE invoices SET paid = 1 ' +
  'FROM users WHERE users.id = user_id')
await this.#db.transaction(async (tx) => {
  await tx.execute(INSERT)
  await this.#remove(tx)
})
}
async #remove(tx) {
  await tx.execute(\`DELETE FROM \${TABLE}\`)`
  const { findings } = await fixture(t, {
    ...MIGRATIONS,
    'billing/plugins/pay.ts': `${plugin('Pay', body)}
const INSERT = 'INSERT INTO users (id) VALUES ($1)'
const TABLE = 'users'
`,
  })
  assert.deepEqual(await findings(RULE), [
    `billing/plugins/pay.ts:9 error ${STRANGER}`,
    `billing/plugins/pay.ts:13 error ${STRANGER}`,
    `billing/plugins/pay.ts:17 error ${STRANGER}`,
    `billing/plugins/pay.ts:28 error ${STRANGER}`,
    `billing/plugins/pay.ts:29 error ${STRANGER}`,
  ])
})

test('a helper of the domain that takes the database by its type is checked too', async (t) => {
  const { findings } = await fixture(t, {
    ...MIGRATIONS,
    'billing/people.ts': `import type { Queryable, Tools } from '#heddle'
export const names = (db: Queryable) => db.query('SELECT name FROM users')
export function first({ query }: Pick<Tools['db'], 'query'>) {
  return query('SELECT name FROM users LIMIT 1')
}
`,
  })
  assert.deepEqual(await findings(RULE), [
    `billing/people.ts:2 error ${STRANGER}`,
    `billing/people.ts:4 error ${STRANGER}`,
  ])
})

test('own tables, tables of nobody, names in strings and comments, and common table expressions are fine', async (t) => {
  const body = `await this.#db.query("SELECT 'users' FROM invoices -- FROM users")
await this.#db.query('SELECT * FROM sqlite_master /* JOIN users */')
await this.#db.query('WITH users AS (SELECT * FROM invoices) SELECT * FROM users')
await this.#db.query(statement)
await other.query('SELECT * FROM users')`
  const { lint } = await fixture(t, { ...MIGRATIONS, 'billing/plugins/pay.ts': plugin('Pay', body) })
  assert.deepEqual((await lint()).findings, [])
})

test('two domains that create one table are found at the second', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/001_x.sql': 'CREATE TABLE things (id TEXT);\n',
    'b/migrations/001_x.sql': '\n\nCREATE TABLE main.[Things] (id TEXT);\n',
    'c/migrations/001_x.sql': 'CREATE TEMP TABLE things (id TEXT);\n',
  })
  assert.deepEqual(await findings(RULE), [
    "b/migrations/001_x.sql:3 error the domain 'b' creates the table 'things' of the domain 'a' (a/migrations/001_x.sql:1)",
  ])
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

test('a table that its domain drops or renames is its own no longer, a renamed one is', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/001_a.sql': 'CREATE TABLE rows (id TEXT);\n',
    'a/migrations/002_a.sql':
      'CREATE TABLE next (id TEXT);\nINSERT INTO next SELECT id FROM rows;\nDROP TABLE rows;\nALTER TABLE next RENAME TO rows;\n',
    'b/migrations/001_b.sql': 'CREATE TABLE next (id TEXT);\nALTER TABLE next RENAME TO kept;\n',
    'b/plugins/b.ts': plugin(
      'B',
      "await this.#db.query('SELECT * FROM next, kept')\nawait this.#db.query('SELECT * FROM rows')",
    ),
  })
  assert.deepEqual(await findings(RULE), [
    "b/plugins/b.ts:10 error SQL of the domain 'b' touches the table 'rows' of the domain 'a' (a/migrations/002_a.sql:4)",
  ])
})

test('no plugin and no migration touches a table of the runtime, or makes one that is named like one', async (t) => {
  const body = `await this.#db.query('SELECT id FROM heddle_event')
await this.#db.transaction((tx) => tx.execute('DELETE FROM public.heddle_dead'))
await this.#db.query('SELECT 1 FROM heddles')`
  const { findings } = await fixture(t, {
    'billing/migrations/001_log.sql':
      'CREATE TABLE heddle_invoices (id TEXT PRIMARY KEY);\nCREATE TABLE heddles (id TEXT);\n',
    'billing/plugins/pay.ts': plugin('Pay', body),
  })
  const found = (table: string) =>
    `error SQL of the domain 'billing' touches the table '${table}' of the runtime: names with heddle_ are its own`
  assert.deepEqual(await findings(RULE), [
    `billing/migrations/001_log.sql:1 ${found('heddle_invoices')}`,
    `billing/plugins/pay.ts:9 ${found('heddle_event')}`,
    `billing/plugins/pay.ts:10 ${found('heddle_dead')}`,
  ])
})

test('what sql`…` composes is SQL, wherever it is put together', async (t) => {
  const body = `const mine = this.#db.sql\`SELECT id FROM invoices WHERE user = \${'users'}\`
await this.#db.query(mine)
const theirs = this.#db.sql\`EXISTS (SELECT 1 FROM users WHERE id = \${1})\`
await this.#db.query(this.#db.sql\`SELECT id FROM invoices WHERE \${theirs}\`)
const { sql: tag } = this.#db
const filters = [tag\`id IN (SELECT id FROM users)\`]
await this.#db.transaction(async (tx) => { await tx.execute(sql\`DELETE FROM \${sql.id('users')}\`) })
await this.#db.execute(sql\`INSERT INTO \${sql.raw('heddle_event')} \${sql.rows(['id'], [])}\`)
String.raw\`SELECT id FROM users\``
  const { findings } = await fixture(t, {
    ...MIGRATIONS,
    'billing/plugins/pay.ts': plugin('Pay', body).replace('import { Plugin', 'import { Plugin, sql'),
  })
  assert.deepEqual(
    (await findings(RULE)).map((finding) => finding.replace(STRANGER, 'users')),
    [
      'billing/plugins/pay.ts:11 error users',
      'billing/plugins/pay.ts:14 error users',
      'billing/plugins/pay.ts:15 error users',
      "billing/plugins/pay.ts:16 error SQL of the domain 'billing' touches the table 'heddle_event' of the runtime: names with heddle_ are its own",
    ],
  )
})
