import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertFindings, fixture } from '../../support/lint-fixture.ts'

const RULE = 'migration-order'

test('file names that are not NNN_name.sql and numbers used twice are found', (t) => {
  const form = (name: string) => `//! error the file name '${name}' is not of the form NNN_name.sql`
  return assertFindings(t, RULE, {
    'a/migrations/1_first.sql': form('1_first.sql'),
    'a/migrations/001_first.sql': '//! error the number 001 is taken by a/migrations/001_again.sql',
    'a/migrations/001_again.sql': '',
    'a/migrations/002-dash.sql': form('002-dash.sql'),
    'a/migrations/1000_fine.sql': '',
    'b/migrations/001_first.sql': '',
    'b/migrations/README.md': '',
  })
})

test('a dependency that does not exist is found at its line', (t) =>
  assertFindings(t, RULE, {
    'a/migrations/001_x.sql': `-- first
-- depends: b/001_y
-- depends: b/009_gone //! error a/001_x depends on 'b/009_gone', which does not exist
SELECT 1;
`,
    'b/migrations/001_y.sql': '',
  }))

test('a dependency below the header is found, since the runner does not follow it', (t) => {
  const below = "//! error the dependency on 'b/001_y' is not followed: it stands below the header"
  return assertFindings(t, RULE, {
    'a/migrations/001_x.sql': `/* licence */\n-- depends: b/001_y ${below}\n`,
    'a/migrations/002_x.sql': `--\n\n--Depends : b/001_y\nSELECT 1; -- depends: b/001_y ${below}\n`,
    'b/migrations/001_y.sql': '',
  })
})

test('a circle is found once, the order within a domain included', (t) => {
  const circle = 'a/001_x → b/002_y → b/001_y → a/002_x → a/001_x'
  return assertFindings(t, RULE, {
    'a/migrations/001_x.sql': `\n-- depends: b/002_y //! error the dependencies go in a circle: ${circle}\n`,
    'a/migrations/002_x.sql': '',
    'b/migrations/001_y.sql': '-- depends: a/002_x\n',
    'b/migrations/002_y.sql': '',
  })
})

test("a migration that needs another domain's table without depending on it is found at the table", (t) => {
  const needs = (id: string) =>
    `//! error ${id} needs the table 'users' that users/001_users creates: add '-- depends: users/001_users'`
  return assertFindings(t, RULE, {
    'users/migrations/001_users.sql': 'CREATE TABLE users (id TEXT PRIMARY KEY);\n',
    'users/migrations/002_more.sql': 'ALTER TABLE users ADD COLUMN name TEXT;\n',
    'a/migrations/001_references.sql': `CREATE TABLE a (
  id TEXT,
  user_id TEXT REFERENCES users (id) ${needs('a/001_references')}
);
`,
    'b/migrations/001_alters.sql': `ALTER TABLE users ADD COLUMN b TEXT; ${needs('b/001_alters')}\n`,
    'c/migrations/001_fills.sql': `CREATE TABLE c (id TEXT);
INSERT INTO c SELECT id FROM users; ${needs('c/001_fills')}
`,
  })
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
