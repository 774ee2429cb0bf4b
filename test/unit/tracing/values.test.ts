import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DbError, HeddleError } from '../../../src/core/errors/catalogue.ts'
import { describeDbCall } from '../../../src/stores/sql/database.ts'
import { exceptionOf } from '../../../src/tracing/attributes.ts'

test('what a plugin throws is shown with its message and its stack', () => {
  const { type, message, attributes } = exceptionOf(new RangeError('the till is jammed'))
  assert.deepEqual([type, message], ['RangeError', 'the till is jammed'])
  assert.equal(attributes['exception.type'], 'RangeError')
  assert.match(attributes['exception.stacktrace']!, /^RangeError: the till is jammed\n {4}at .*values\.test\.ts/)
})

test('a fault of the database is shown by its kind and its code: what it quotes may be a parameter', () => {
  const cause = Object.assign(new Error('invalid input: "SECRET"'), { code: '22P02' })
  const error = new DbError('other', 'invalid input: "SECRET {"card":"SECRET"}"\nSECRET', { cause })
  const shown = exceptionOf(error)
  assert.deepEqual([shown.type, shown.message], ['other', 'Database error: other'])
  assert.equal(shown.more['db.response.status_code'], '22P02')
  assert.ok(!JSON.stringify(shown).includes('SECRET'))
})

test('an error of the runtime is shown as the catalogue has it', () => {
  const shown = exceptionOf(new HeddleError('STATE_NOT_A_NUMBER', 'the key "SECRET" does not hold an integer'))
  assert.equal(shown.type, 'STATE_NOT_A_NUMBER')
  assert.ok(!JSON.stringify(shown).includes('SECRET'))
})

test('what cannot be read does not throw', () => {
  const thrower = (key: string): Error =>
    Object.defineProperty(new Error('x'), key, {
      get() {
        throw new Error('no')
      },
    })
  const { proxy, revoke } = Proxy.revocable(new Error('x'), {})
  revoke()
  const things = [thrower('stack'), thrower('code'), thrower('name'), thrower('message'), proxy, null, undefined, 7n]
  things.push(Object.assign(new Error('x'), { name: Object.create(null) }))
  for (const thing of things) assert.equal(typeof exceptionOf(thing).message, 'string')
})

test('long messages are cut', () => {
  assert.equal(exceptionOf(new Error('x'.repeat(400_000))).message.length, 1024)
})

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
