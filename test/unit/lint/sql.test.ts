import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tablesOf } from '../../../src/devtools/lint/sql-tables.ts'
import { ANY_DIALECT, tokenizeSql } from '../../../src/stores/sql/tokens.ts'

const kinds = (sql: string) => tokenizeSql(sql, ANY_DIALECT).map(({ kind, text }) => `${kind} ${text}`)
/** The tables that the migrations of these statements make. Other names stand where a table could: nobody asks for them. */
const KNOWN = new Set(['a', 'f', 'other.t', 'p', 's.t', 's.u', 't', 'u', 'v', 'w'])
const used = (sql: string) =>
  tablesOf(sql)
    .filter(({ table }) => KNOWN.has(table))
    .map(({ table, role }) => (role === 'create' ? `+${table}` : table))

test('strings, quoted names, comments and placeholders are single tokens', () => {
  assert.deepEqual(kinds(`'it''s' "a ""b""" \`c\` [d e] $1 ?2 x$1 1.5e3 -- end`), [
    "string it's",
    'name a "b"',
    'name c',
    'name d e',
    'placeholder $1',
    'placeholder ?2',
    'word x$1',
    'number 1.5e3',
    'comment  end',
  ])
  assert.deepEqual(kinds("E'it\\'s' 'a\\' x"), ['word E', "string it\\'s", 'string a\\', 'word x'])
  assert.deepEqual(kinds('/* a /* b */ c */ x'), ['comment  a /* b */ c ', 'word x'])
  assert.deepEqual(kinds("$$ it's $$ $f$ $$ ; $f$ x"), ["string  it's ", 'string  $$ ; ', 'word x'])
})

test('brackets after a value are subscripts, elsewhere they quote a name', () => {
  assert.deepEqual(kinds('a[1]'), ['word a', 'mark [', 'number 1', 'mark ]'])
  assert.deepEqual(kinds('ARRAY [1]'), ['word ARRAY', 'mark [', 'number 1', 'mark ]'])
  assert.deepEqual(kinds('FROM [a b].[c]'), ['word FROM', 'name a b', 'mark .', 'name c'])
})

test('what is not closed goes on to the end', () => {
  for (const sql of ["'a", '"a', '[a', '$$ a', '/* a', '$f$ a']) assert.equal(tokenizeSql(sql, ANY_DIALECT).length, 1)
})

const STATEMENTS: ReadonlyArray<[sql: string, tables: string[]]> = [
  ['SELECT a FROM t', ['t']],
  ['SELECT a FROM t x, u AS y, public.v', ['t', 'u', 'v']],
  ['SELECT a FROM other.t', ['other.t']],
  ['SELECT a FROM t LEFT JOIN u USING (id) CROSS JOIN LATERAL (SELECT * FROM v) w', ['t', 'u', 'v']],
  ['SELECT a FROM (t JOIN u ON t.id = u.id), v', ['t', 'u', 'v']],
  ['SELECT (SELECT max(n) FROM u) FROM t WHERE id IN (SELECT id FROM v)', ['u', 't', 'v']],
  ['SELECT * FROM json_each($1) j, t', ['t']],
  ['SELECT extract(year FROM at), trim(both FROM x), substring(s FROM 2) FROM t', ['t']],
  ['SELECT * FROM t WHERE a IS DISTINCT FROM b', ['t']],
  ['SELECT * FROM t ORDER BY a, b FOR UPDATE OF t', ['t']],
  ['SELECT 1 FROM t UNION SELECT 2 FROM u', ['t', 'u']],
  ['SELECT at::timestamp WITH TIME ZONE FROM t', ['t']],
  ['INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a', ['t']],
  ['INSERT OR IGNORE INTO t SELECT * FROM u', ['t', 'u']],
  ['REPLACE INTO t VALUES (1)', ['t']],
  ['UPDATE ONLY t SET a = u.a FROM u WHERE t.id = u.id', ['t', 'u']],
  ['UPDATE OR IGNORE t SET a = 1', ['t']],
  ['DELETE FROM t USING u, v WHERE t.id = u.id', ['t', 'u', 'v']],
  ['MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET a = 1', ['t', 'u']],
  ['TRUNCATE t, u; TRUNCATE TABLE v', ['t', 'u', 'v']],
  ['CREATE TABLE t (a TEXT REFERENCES u (a) ON DELETE CASCADE ON UPDATE CASCADE, b TEXT)', ['+t', 'u']],
  ['CREATE TABLE IF NOT EXISTS t AS SELECT * FROM u', ['+t', 'u']],
  ['CREATE TEMPORARY TABLE t (a TEXT); CREATE VIRTUAL TABLE f USING fts5 (a)', ['+f']],
  ['CREATE OR REPLACE VIEW v AS SELECT * FROM t', ['+v', 't']],
  ['ALTER TABLE IF EXISTS ONLY t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u (a)', ['t', 'u']],
  ['ALTER TABLE t RENAME TO u; ALTER TABLE t RENAME COLUMN a TO b', ['t', '+u', 't']],
  ['DROP TABLE IF EXISTS t, u CASCADE', ['t', 'u']],
  ['CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON t USING btree (a, b)', ['t']],
  ['CREATE TRIGGER g AFTER UPDATE OF a ON t BEGIN UPDATE u SET n = n + 1; DELETE FROM v; END', ['t', 'u', 'v']],
  ['WITH a AS (SELECT * FROM t), b (x) AS NOT MATERIALIZED (SELECT * FROM a) SELECT * FROM a, b', ['t']],
  ['WITH t AS (SELECT * FROM t) SELECT * FROM t', ['t']],
  ['WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) INSERT INTO t SELECT * FROM r', ['t']],
  ['WITH a AS (DELETE FROM t RETURNING id) SELECT * FROM a; SELECT * FROM a', ['t', 'a']],
  ['CREATE TABLE t (LIKE u INCLUDING ALL); CREATE TABLE p PARTITION OF t DEFAULT', ['+t', 'u', '+p', 't']],
  ['CREATE TABLE t () INHERITS (u, v); CREATE TABLE w AS TABLE t', ['+t', 'u', 'v', '+w', 't']],
  ['CREATE TABLE temp.t (a TEXT); SELECT * FROM temp.t', []],
  ['SELECT 1 UNION ALL TABLE t', ['t']],
  ['GRANT SELECT, INSERT ON TABLE t, u TO someone; GRANT USAGE ON SCHEMA s TO someone', ['t', 'u']],
  ['COPY t (a) FROM STDIN; LOCK TABLE u IN SHARE MODE; LOCK v', ['t', 'u', 'v']],
  ['DROP TRIGGER g ON t; CREATE POLICY p ON u USING (id IN (SELECT id FROM v))', ['t', 'u', 'v']],
  ['DO $$ BEGIN DELETE FROM t; END $$', ['t']],
  ["CREATE FUNCTION f() RETURNS trigger AS 'INSERT INTO t VALUES (''FROM x'')' LANGUAGE plpgsql", ['t']],
  ['SELECT * FROM ROWS FROM (f(1), g(2)) AS r, t', ['t']],
  ['ALTER TABLE s.t RENAME TO u', ['s.t', '+s.u']],
  ['SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x JOIN a ON true', ['a']],
]

for (const [sql, tables] of STATEMENTS) {
  test(`tables of: ${sql}`, () => assert.deepEqual(used(sql), tables))
}
