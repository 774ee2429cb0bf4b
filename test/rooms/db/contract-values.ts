import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SqlValue } from '../../../src/contracts/db.ts'
import type { SqlDatabase } from '../../../src/stores/sql/database.ts'
import { type CreateDatabase, libraryOn } from './library.ts'
import { rejectsWith } from './rejects-with.ts'

/** Which values come back from every database, and as what. */
export function describeValues(create: CreateDatabase): void {
  describe('values', () => {
    async function stored(db: SqlDatabase, column: string, value: SqlValue): Promise<unknown> {
      await db.execute(`INSERT INTO samples (id, ${column}) VALUES ('s', $1)`, [value])
      const row = await db.queryOne(`DELETE FROM samples RETURNING ${column} AS value`)
      await db.execute(`INSERT INTO samples (id, ${column}) VALUES ('s', $1)`, [value])
      const read = await db.queryOne(`SELECT ${column} AS value FROM samples`)
      await db.execute('DELETE FROM samples')
      assert.deepEqual(row?.value, read?.value, 'RETURNING and SELECT agree')
      return read?.value
    }

    test('integers keep every digit: number up to 2^53 - 1, bigint beyond', async (t) => {
      const db = await libraryOn(t, create)
      for (const value of [0, -1, 5_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
        assert.equal(await stored(db, 'big', value), value)
      }
      for (const value of [2n ** 53n, 9007199254740993n, 2n ** 63n - 1n, -(2n ** 63n)]) {
        assert.equal(await stored(db, 'big', value), value)
      }
      assert.equal(await stored(db, 'big', 12n), 12)
      await rejectsWith('other', stored(db, 'big', 2n ** 63n))
    })

    test('booleans of a BOOLEAN column come back as true and false', async (t) => {
      const db = await libraryOn(t, create)
      assert.equal(await stored(db, 'flag', true), true)
      assert.equal(await stored(db, 'flag', false), false)
      assert.equal(await stored(db, 'flag', null), null)
    })

    test('floats, text, bytes and null come back as they went in', async (t) => {
      const db = await libraryOn(t, create)
      for (const value of [0.1, -1e300, 1.5]) assert.equal(await stored(db, 'ratio', value), value)
      for (const value of ['', 'żółw 🧵', "'; DROP TABLE samples; --", 'x'.repeat(100_000)]) {
        assert.equal(await stored(db, 'note', value), value)
      }
      assert.equal(await stored(db, 'note', null), null)
      const bytes = await stored(db, 'bytes', new Uint8Array([0, 255, 7]))
      assert.ok(bytes instanceof Uint8Array)
      assert.deepEqual([...bytes], [0, 255, 7])
    })

    test('a Date is stored as its ISO 8601 text, and read as that from every column of a point in time', async (t) => {
      const db = await libraryOn(t, create)
      for (const ms of [1700000000123, 1700000000120, 1700000000000, -1]) {
        const iso = new Date(ms).toISOString()
        for (const column of ['at', 'moment', 'instant']) assert.equal(await stored(db, column, new Date(ms)), iso)
      }
    })

    test('NUMERIC: a number where a number holds its decimal digits', async (t) => {
      const db = await libraryOn(t, create)
      for (const value of [0, 10, 12.5, -0.0001, 1234567890.1234, 0.1, 99.99])
        assert.equal(await stored(db, 'amount', value), value)
      assert.equal(await stored(db, 'amount', '12.50'), 12.5)
    })

    test('counts, sums and averages are numbers', async (t) => {
      const db = await libraryOn(t, create)
      for (const [id, small] of Object.entries({ a: 1, b: 2, c: 2 })) {
        await db.execute('INSERT INTO samples (id, small, big, amount) VALUES ($1, $2, $3, $4)', [
          id,
          small,
          small,
          small,
        ])
      }
      assert.deepEqual(
        await db.queryOne(
          'SELECT count(*) AS n, sum(small) AS small, sum(big) AS big, sum(amount) AS amount, max(big) AS most, coalesce(sum(small), 0) AS zero FROM samples',
        ),
        { n: 3, small: 5, big: 5, amount: 5, most: 2, zero: 5 },
      )
      const row = await db.queryOne<{ mean: number }>('SELECT avg(small) AS mean FROM samples')
      assert.ok(Math.abs((row?.mean ?? 0) - 5 / 3) < 1e-12)
    })

    test('JSON comes back as the text that went in', async (t) => {
      const db = await libraryOn(t, create)
      for (const text of ['{"b": [1, null], "a":"ż"}', '[]', '"x"']) assert.equal(await stored(db, 'body', text), text)
    })

    test('a value is stored as the column wants it', async (t) => {
      const db = await libraryOn(t, create)
      assert.equal(await stored(db, 'note', 5), '5')
      assert.equal(await stored(db, 'note', 5_000_000_000), '5000000000')
      assert.equal(await stored(db, 'note', 1.5), '1.5')
      assert.equal(await stored(db, 'small', '7'), 7)
      assert.equal(await stored(db, 'small', true), 1)
      assert.equal(await stored(db, 'ratio', 7), 7)
      assert.equal(await stored(db, 'ratio', '0.5'), 0.5)
    })

    test('a cast says what a parameter is where nothing else does', async (t) => {
      const db = await create(t)
      assert.deepEqual(
        await db
          .query('SELECT CAST($1 AS INTEGER) + 1 AS n, CAST($2 AS TEXT) AS t, CAST($3 AS TEXT) IS NULL AS e', [
            1,
            'x',
            'y',
          ])
          .then(([row]) => ({ ...row, e: Boolean(row?.e) })),
        { n: 2, t: 'x', e: false },
      )
      assert.deepEqual(await db.query('SELECT $1 AS t', ['x']), [{ t: 'x' }])
    })

    test('of two columns with one name the last counts', async (t) => {
      assert.deepEqual(await (await create(t)).query('SELECT 1 AS a, 2 AS a'), [{ a: 2 }])
    })

    test('what no database would store as it is, is refused', async (t) => {
      const db = await libraryOn(t, create)
      const unfit = [
        undefined,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        {},
        [1],
        () => 1,
        Symbol('s'),
        new Date('x'),
        'a\0b',
        'half a pair: \ud800',
        '\udc00',
      ]
      for (const value of unfit) {
        await rejectsWith('other', db.execute(`UPDATE samples SET note = $1`, [value as SqlValue]), /Parameter \$1 is/)
      }
    })
  })
}
