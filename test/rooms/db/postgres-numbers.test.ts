import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { postgresDb } from './fixture.ts'

/** NUMERIC texts that no JavaScript number has the decimal digits of. */
const TEXTS = [
  '12345678901234567.89',
  '12345678901234567890123456',
  '12345678901234567890',
  '-9007199254740993',
  '0.12345678901234567890',
  '0.1000000000000000055511151231257827',
  `1${'0'.repeat(400)}`,
  `0.${'0'.repeat(330)}1`,
  `123456789012.${'0'.repeat(20)}1`,
]
const NUMBERS: readonly [text: string, value: number][] = [
  ['0', 0],
  ['0.00', 0],
  ['1.10', 1.1],
  ['-0.10', -0.1],
  ['100.00', 100],
  ['9007199254740992', 9007199254740992],
  ['9007199254740993.0', Number.NaN],
  ['10000000000000000000000', 1e22],
  ['0.0000001', 1e-7],
  ['0.30000000000000004', 0.30000000000000004],
  ['123456789.123456', 123456789.123456],
]

describeOnPostgres('numbers of PostgreSQL', (server) => {
  test('NUMERIC: text where a number would have other digits, and it is stored again as it was', async (t) => {
    const db = postgresDb(t, server, await server.createDatabase())
    await db.execute('CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance NUMERIC)')
    for (const [id, text] of TEXTS.entries()) {
      await db.execute('INSERT INTO accounts VALUES ($1, $2)', [id, text])
      const read = async () =>
        (await db.queryOne<{ balance: unknown }>('SELECT balance FROM accounts WHERE id = $1', [id]))?.balance
      assert.equal(await read(), text)
      await db.execute('UPDATE accounts SET balance = $2 WHERE id = $1', [id, (await read()) as string])
      const same = await db.queryOne('SELECT balance = CAST($2 AS NUMERIC) AS same FROM accounts WHERE id = $1', [
        id,
        text,
      ])
      assert.deepEqual(same, { same: true })
    }
  })

  test('NUMERIC: a number where it has the same decimal digits, whatever zeros are behind them', async (t) => {
    const db = postgresDb(t, server, await server.createDatabase())
    for (const [text, value] of NUMBERS) {
      const row = await db.queryOne<{ n: unknown }>('SELECT CAST($1 AS NUMERIC) AS n', [text])
      if (Number.isNaN(value)) assert.equal(row?.n, text)
      else assert.equal(row?.n, value)
    }
  })

  test('NUMERIC: of 20,000 random decimals each comes back as the value that it is', async (t) => {
    const db = postgresDb(t, server, await server.createDatabase())
    const rows = await db.query<{ n: number | string; text: string }>(
      `SELECT n, CAST(n AS TEXT) AS text FROM (
         SELECT CAST(random() * power(10, (i % 24)) AS NUMERIC) + CAST(random() AS NUMERIC) * power(10::numeric, -(i % 9)) AS n
         FROM generate_series(1, 20000) AS i) AS r`,
    )
    for (const { n, text } of rows) if (typeof n === 'string') assert.equal(n, text)
    const listOf = (values: readonly unknown[]) => `{${values.join(',')}}`
    const other = await db.query(
      'SELECT a, b FROM unnest(CAST($1 AS NUMERIC[]), CAST($2 AS NUMERIC[])) AS pairs (a, b) WHERE a <> b',
      [listOf(rows.map(({ n }) => n)), listOf(rows.map(({ text }) => text))],
    )
    assert.deepEqual(other, [])
    assert.ok(rows.some(({ n }) => typeof n === 'string') && rows.some(({ n }) => typeof n === 'number'))
  })
})
