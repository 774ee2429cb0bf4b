import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../support/lint-fixture.ts'

const RULE = 'migration-order'

test('file names that are not NNN_name.sql and numbers used twice are found', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/1_first.sql': '',
    'a/migrations/001_first.sql': '',
    'a/migrations/001_again.sql': '',
    'a/migrations/002-dash.sql': '',
    'a/migrations/1000_fine.sql': '',
    'b/migrations/001_first.sql': '',
    'b/migrations/README.md': '',
  })
  assert.deepEqual(await findings(RULE), [
    'a/migrations/001_first.sql:1 error the number 001 is taken by a/migrations/001_again.sql',
    "a/migrations/002-dash.sql:1 error the file name '002-dash.sql' is not of the form NNN_name.sql",
    "a/migrations/1_first.sql:1 error the file name '1_first.sql' is not of the form NNN_name.sql",
  ])
})

test('a dependency that does not exist is found at its line', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/001_x.sql': '-- first\n-- depends: b/001_y\n-- depends: b/009_gone\nSELECT 1;\n',
    'b/migrations/001_y.sql': '',
  })
  assert.deepEqual(await findings(RULE), [
    "a/migrations/001_x.sql:3 error a/001_x depends on 'b/009_gone', which does not exist",
  ])
})

test('a dependency below the header is found, since the runner does not follow it', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/001_x.sql': '/* licence */\n-- depends: b/001_y\n',
    'a/migrations/002_x.sql': '--\n\n--Depends : b/001_y\nSELECT 1; -- depends: b/001_y\n',
    'b/migrations/001_y.sql': '',
  })
  const message = "error the dependency on 'b/001_y' is not followed: it stands below the header"
  assert.deepEqual(await findings(RULE), [`a/migrations/001_x.sql:2 ${message}`, `a/migrations/002_x.sql:4 ${message}`])
})

test('a circle is found once, the order within a domain included', async (t) => {
  const { findings } = await fixture(t, {
    'a/migrations/001_x.sql': '\n-- depends: b/002_y\n',
    'a/migrations/002_x.sql': '',
    'b/migrations/001_y.sql': '-- depends: a/002_x\n',
    'b/migrations/002_y.sql': '',
  })
  assert.deepEqual(await findings(RULE), [
    'a/migrations/001_x.sql:2 error the dependencies go in a circle: a/001_x → b/002_y → b/001_y → a/002_x → a/001_x',
  ])
})

test("a migration that needs another domain's table without depending on it is found at the table", async (t) => {
  const { findings } = await fixture(t, {
    'users/migrations/001_users.sql': 'CREATE TABLE users (id TEXT PRIMARY KEY);\n',
    'users/migrations/002_more.sql': 'ALTER TABLE users ADD COLUMN name TEXT;\n',
    'a/migrations/001_references.sql': 'CREATE TABLE a (\n  id TEXT,\n  user_id TEXT REFERENCES users (id)\n);\n',
    'b/migrations/001_alters.sql': 'ALTER TABLE users ADD COLUMN b TEXT;\n',
    'c/migrations/001_fills.sql': 'CREATE TABLE c (id TEXT);\nINSERT INTO c SELECT id FROM users;\n',
  })
  const wanted = "needs the table 'users' that users/001_users creates: add '-- depends: users/001_users'"
  assert.deepEqual(await findings(RULE), [
    `a/migrations/001_references.sql:3 error a/001_references ${wanted}`,
    `b/migrations/001_alters.sql:1 error b/001_alters ${wanted}`,
    `c/migrations/001_fills.sql:2 error c/001_fills ${wanted}`,
  ])
})

test('a dependency may be declared by an earlier migration of the domain, or lie behind another', async (t) => {
  const { lint } = await fixture(t, {
    'users/migrations/001_users.sql': 'CREATE TABLE users (id TEXT PRIMARY KEY);\n',
    'users/migrations/002_more.sql': 'ALTER TABLE users ADD COLUMN name TEXT;\n',
    'a/migrations/001_a.sql': '-- depends: users/002_more\nCREATE TABLE a (user_id TEXT REFERENCES users (id));\n',
    'a/migrations/002_a.sql': 'CREATE INDEX a_users ON a (user_id);\nINSERT INTO a SELECT id FROM users;\n',
  })
  const { ok, findings, checked } = await lint()
  assert.deepEqual(findings, [])
  assert.equal(ok, true)
  assert.equal(checked.migrations, 4)
})
