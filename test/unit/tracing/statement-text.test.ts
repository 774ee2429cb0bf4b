import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeDbCall } from '../../../src/stores/sql/database.ts'

const textOf = (sql: string): unknown =>
  describeDbCall('query', [sql, ['a parameter']], {}).attributes?.['db.query.text']

test('a statement is told with its placeholders and names, and without what stands in it as a value', () => {
  const told: Record<string, string> = {
    'SELECT id FROM users WHERE email = $1 AND age > $2': 'SELECT id FROM users WHERE email = $1 AND age > $2',
    "SELECT 'it''s' AS t1, \"it's\" FROM a WHERE b = 'x'": 'SELECT ? AS t1, "it\'s" FROM a WHERE b = ?',
    "SELECT 1 -- don't\n WHERE 'a' = 'SECRET'": 'SELECT ?  \n WHERE ? = ?',
    "SELECT /* it's SECRET */ 2": 'SELECT   ?',
    "SELECT E'it\\'s SECRET', x": 'SELECT ?, x',
    'SELECT $tag$it is SECRET$tag$, $$SECRET$$, $1': 'SELECT ?, ?, $1',
    'SELECT * FROM t2 LIMIT 10 OFFSET 2.5e3': 'SELECT * FROM t2 LIMIT ? OFFSET ?',
  }
  for (const [sql, text] of Object.entries(told)) assert.equal(textOf(sql), text)
})

test('what is called without a statement tells none', () => {
  assert.deepEqual(describeDbCall('transaction', [async () => {}], { 'db.system.name': 'sqlite' }), {
    kind: 'client',
    attributes: { 'db.system.name': 'sqlite' },
  })
})
