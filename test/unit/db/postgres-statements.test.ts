import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decoderOf, Execution } from '../../../src/extras/postgres/execution.ts'
import { poolShare } from '../../../src/extras/postgres/pool.ts'
import { Statements } from '../../../src/extras/postgres/statement.ts'
import { controlIn, shapeOf as shapeIn } from '../../../src/stores/sql/statement.ts'
import { POSTGRES_DIALECT } from '../../../src/stores/sql/tokens.ts'
import { rejectsWith } from '../../rooms/db/rejects-with.ts'

const shapeOf = (sql: string) => shapeIn(sql, POSTGRES_DIALECT)

test('placeholders are counted where PostgreSQL sees them', () => {
  const counts: [string, number][] = [
    ['SELECT $1, $2', 2],
    [`SELECT '$1', E'\\'$2', e'$3'`, 0],
    [`SELECT 'it''s $1', "a""$2", $3`, 3],
    ['SELECT $$ $1 $$, $tag$ $2 $$ $tag$, $3', 3],
    ['SELECT 1 -- $1\n, $2 /* $3 /* $4 */ $5 */ , $6', 6],
    ['SELECT a$1, é$2, $3::int', 3],
    ['SELECT U&"d\\0061t $1", $10', 10],
    ['SELECT x[$1:$2], y ? $3', 3],
    [`SELECT 'never closed $1`, 0],
    ['SELECT $tag$ never closed $1', 0],
    ['SELECT /* never closed $1', 0],
    ["SELECT E'\\\\', $1", 1],
  ]
  for (const [sql, expected] of counts) assert.equal(shapeOf(sql).parameterCount, expected, sql)
  assert.equal(shapeOf('SELECT $1, $3').missingParameter, 2)
})

test('the command is the first word', () => {
  for (const sql of ['-- x\n/* y */ (SELECT 1)', 'select 1', ' \n Select 1'])
    assert.equal(shapeOf(sql).command, 'SELECT')
  assert.equal(shapeOf(' -- nothing').command, '')
})

test('what would outlive its statement on a connection is refused', async () => {
  const statements = new Statements()
  const refused = async (sql: string, message: RegExp) =>
    rejectsWith('other', (async () => statements.get(sql))(), message)
  for (const sql of ['BEGIN', 'start transaction', 'COMMIT', 'End', 'rollback', 'ABORT', 'SAVEPOINT a', 'RELEASE a']) {
    await refused(sql, /db\.transaction/)
  }
  await refused(`PREPARE TRANSACTION 'x'`, /db\.transaction/)
  for (const sql of [
    'SET search_path = x',
    'SET SESSION x = 1',
    'RESET ALL',
    'LISTEN a',
    'DISCARD ALL',
    'COPY a FROM STDIN',
    'PREPARE a AS SELECT 1',
  ]) {
    await refused(sql, /cannot be sent/)
  }
  for (const sql of [
    "SELECT set_config('app.tenant', $1, false)",
    "SELECT pg_catalog.SET_CONFIG('app.tenant', concat($1::text, ','), $2), 1",
    `SELECT "set_config"('a.b', 'true', true AND false)`,
    'SELECT pg_advisory_lock(1)',
    'WITH a AS (SELECT pg_try_advisory_lock_shared (1, 2)) SELECT * FROM a',
    'CREATE TEMP TABLE mine (id INTEGER)',
    'create /* x */ local temporary sequence mine',
    'CREATE OR REPLACE TEMP VIEW mine AS SELECT 1',
    'SELECT 1 AS one INTO TEMPORARY mine',
  ]) {
    await refused(sql, /would stay in a session that other statements use next: send /)
  }
  for (const sql of [
    "SELECT set_config('app.tenant', $1, true)",
    "SELECT set_config('app.tenant', concat($1::text, (SELECT 'false')), TRUE), pg_advisory_xact_lock(1)",
    'CREATE TEMP TABLE mine (id INTEGER) ON COMMIT DROP',
    "SELECT 'set_config(1, 2, false)', temp, template FROM readings",
    'SELECT pg_advisory_unlock_all()',
    'DO $$ BEGIN PERFORM pg_advisory_lock(1); END $$',
    'SET LOCAL work_mem = 1',
    'SET TRANSACTION READ ONLY',
    'SET CONSTRAINTS ALL DEFERRED',
    'SELECT 1',
  ]) {
    assert.equal(statements.get(sql).sql, sql)
  }
})

test('of the statements that come again the latest thousand are remembered', () => {
  const statements = new Statements()
  const first = statements.get('SELECT 0')
  assert.equal(first.isRepeated, false)
  assert.equal(statements.get('SELECT 0'), first)
  assert.equal(first.isRepeated, true)
  for (let n = 1; n < 2000; n++) statements.get(`SELECT ${n}`)
  assert.notEqual(statements.get('SELECT 0'), first)
  const long = `SELECT '${'x'.repeat(20_000)}'`
  assert.notEqual(statements.get(long), statements.get(long))
})

test('a script that would end its own transaction is seen', () => {
  const scripts: [string, string | null][] = [
    ['CREATE TABLE a (id TEXT); COMMIT; CREATE TABLE b (id TEXT)', 'COMMIT'],
    ["-- COMMIT;\nSELECT ';COMMIT;'; SELECT $$;COMMIT;$$", null],
    ['/* a; /* b; */ COMMIT; */ SELECT 1', null],
    ['begin; SELECT 1; end', 'BEGIN'],
    [`PREPARE TRANSACTION 'x'`, 'PREPARE TRANSACTION'],
    ['PREPARE p AS SELECT 1', null],
    ['ROLLBACK TO SAVEPOINT a', 'ROLLBACK'],
    ['CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN 1; END; $f$; SELECT 1', null],
    [
      'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 ELSE 2 END; SELECT 2; END; SELECT 1',
      null,
    ],
    ['CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT', 'COMMIT'],
    ['DO $$ BEGIN NULL; END $$; ABORT', 'ABORT'],
  ]
  for (const [script, expected] of scripts) assert.equal(controlIn(script, POSTGRES_DIALECT), expected, script)
})

test('values of other types come as PostgreSQL writes them, and numbers that are none as such', () => {
  const [timestamp, numeric, float] = [decoderOf(1184)!, decoderOf(1700)!, decoderOf(701)!]
  assert.equal(timestamp('2023-11-14 22:13:20.123456+00'), '2023-11-14T22:13:20.123456Z')
  assert.equal(timestamp('infinity'), 'infinity')
  assert.equal(timestamp('0044-03-15 00:00:00+00 BC'), '0044-03-15 00:00:00+00 BC')
  assert.equal(numeric('9007199254740993'), '9007199254740993')
  assert.equal(numeric('-12'), -12)
  assert.ok(Number.isNaN(numeric('NaN')))
  assert.equal(float('-Infinity'), Number.NEGATIVE_INFINITY)
  assert.equal(decoderOf(2950), undefined)
})

test('the connections of the process are shared out over its threads', () => {
  const shares = (max: number, lanes: number, min = 2) => {
    const total = { max, min }
    const primary = poolShare(total, lanes, { kind: 'primary' })
    const rest = Array.from({ length: lanes }, (_, index) => poolShare(total, lanes, { kind: 'lane', index }))
    return { primary: primary.max, lanes: rest.map((share) => share.max), min: rest.map((share) => share.min) }
  }
  assert.deepEqual(shares(10, 1), { primary: 2, lanes: [8], min: [2] })
  assert.deepEqual(shares(10, 3), { primary: 2, lanes: [3, 3, 2], min: [1, 1, 0] })
  assert.deepEqual(shares(10, 7), { primary: 1, lanes: [2, 2, 1, 1, 1, 1, 1], min: [1, 1, 0, 0, 0, 0, 0] })
  assert.deepEqual(shares(2, 1), { primary: 1, lanes: [1], min: [1] })
  // More threads than connections: one each, and a warning.
  assert.deepEqual(shares(1, 2), { primary: 1, lanes: [1, 1], min: [1, 1] })
  for (let max = 1; max <= 60; max++) {
    for (let lanes = 1; lanes < max; lanes++) {
      const { primary, lanes: each } = shares(max, lanes, max)
      assert.equal(primary + each.reduce((sum, n) => sum + n, 0), max, `${max} over ${lanes}`)
    }
  }
})

test('agents that watch pg find a text and a callback, hear of the end, and take it for no event emitter', () => {
  const execution: object = new Execution(new Statements().get('SELECT 1'), [], () => {})
  assert.ok(!('on' in execution) && !('once' in execution), 'dd-trace and @sentry/node would listen to it')
  const watched = execution as Execution
  const heard: unknown[] = []
  const { callback } = watched
  watched.callback = (failure, result) => {
    heard.push(failure, result.rows)
    callback(failure, result)
  }
  watched.fail('gone')
  assert.deepEqual([watched.text, ...heard], ['SELECT 1', 'gone', []])
})
