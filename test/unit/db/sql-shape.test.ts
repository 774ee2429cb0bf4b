import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controlIn, shapeOf as shapeIn } from '../../../src/stores/sql/statement.ts'
import { SQLITE_DIALECT } from '../../../src/stores/sql/tokens.ts'

const shapeOf = (sql: string) => shapeIn(sql, SQLITE_DIALECT)

test('parameters are counted by their highest number, outside of strings, comments and names', () => {
  const cases: [string, number][] = [
    ['SELECT $1, $2, $1', 2],
    [`SELECT '$9', "$8", [$7], \`$6\`, a$5, x'00' -- $4\n, /* $3 */ $1`, 1],
    [`SELECT 'it''s $9' || $1`, 1],
    ['SELECT 1', 0],
    ['SELECT $12 WHERE $1', 12],
    ['SELECT "unclosed $3', 0],
    ['SELECT naïve$2, $1', 1],
  ]
  for (const [sql, count] of cases) assert.equal(shapeOf(sql).parameterCount, count, sql)
})

test('placeholders of other kinds and gaps are found', () => {
  for (const sql of ['SELECT ?', 'SELECT ?1', 'SELECT :a', 'SELECT @a', 'SELECT $a', 'SELECT $0']) {
    assert.notEqual(shapeOf(sql).foreignPlaceholder, null, sql)
  }
  assert.equal(shapeOf('SELECT $1, $3').missingParameter, 2)
})

test('values are bound by place where each placeholder occurs once', () => {
  const byPlace = (sql: string) => shapeOf(sql).byPlace
  assert.deepEqual(byPlace("VALUES ($1, '$2', $2) -- $3"), { sql: "VALUES (?, '$2', ?) -- $3", order: null })
  assert.deepEqual(byPlace('UPDATE t SET a = $2 WHERE b = $1'), {
    sql: 'UPDATE t SET a = ? WHERE b = ?',
    order: [1, 0],
  })
  assert.equal(byPlace('UPDATE t SET a = $1 WHERE a <> $1'), null)
})

test('the command is the first word', () => {
  assert.equal(shapeOf(' -- begin\n/* commit */ ; (select 1)').command, 'SELECT')
})

test('transaction control is found in a script, and a trigger’s body is not taken for it', () => {
  const trigger = `CREATE TRIGGER a AFTER INSERT ON t BEGIN
    UPDATE t SET n = CASE WHEN n > 1 THEN 2 ELSE 3 END;
    DELETE FROM u; SELECT 'COMMIT; x'; END;`
  assert.equal(controlIn(trigger, SQLITE_DIALECT), null)
  assert.equal(controlIn(`${trigger} INSERT INTO t VALUES (1); COMMIT;`, SQLITE_DIALECT), 'COMMIT')
  assert.equal(controlIn('CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END; END;', SQLITE_DIALECT), 'END')
  assert.equal(controlIn('INSERT INTO t VALUES (1); /* x */ rollback', SQLITE_DIALECT), 'ROLLBACK')
  assert.equal(controlIn('-- BEGIN\nBEGIN; SELECT 1', SQLITE_DIALECT), 'BEGIN')
  assert.equal(controlIn('CREATE VIEW trigger AS SELECT begin FROM t; COMMIT', SQLITE_DIALECT), 'COMMIT')
  assert.equal(controlIn('CREATE TABLE t (n INTEGER); SELECT CASE WHEN 1 THEN 2 END;', SQLITE_DIALECT), null)
})
