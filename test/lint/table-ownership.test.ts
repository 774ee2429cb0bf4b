import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin } from './fixture.ts'

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
