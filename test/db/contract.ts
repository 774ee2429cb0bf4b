import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { DbErrorKind, Queryable, SqlValue } from '../../src/contracts/db.ts'
import { DbError } from '../../src/core/errors/db-error.ts'
import type { SqlDatabase } from '../../src/stores/sql/api.ts'
import { gate } from './fixture.ts'

// Types that both databases take; SQLite stores by value, whatever the name.
const SCHEMA = [
  `CREATE TABLE authors (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, age INTEGER CHECK (age >= 0))`,
  `CREATE TABLE books (id TEXT PRIMARY KEY, author_id TEXT NOT NULL REFERENCES authors (id) ON DELETE RESTRICT, title TEXT)`,
  `CREATE TABLE samples (id TEXT PRIMARY KEY, big BIGINT, small INTEGER, ratio DOUBLE PRECISION, amount NUMERIC(20, 4), flag BOOLEAN,
     bytes BYTEA, at TEXT, moment TIMESTAMP, instant TIMESTAMPTZ, body JSON, note TEXT)`,
]

/** Rejected with a DbError of that kind. */
export async function rejectsWith(kind: DbErrorKind, promise: Promise<unknown>, message?: RegExp): Promise<DbError> {
  let caught: unknown
  await promise.catch((thrown) => {
    caught = thrown
  })
  assert.ok(caught instanceof DbError, `expected a DbError ${kind}, got ${caught}`)
  assert.equal(caught.kind, kind, caught.message)
  assert.equal(caught.code, 'DB_ERROR')
  if (message) assert.match(caught.message, message)
  return caught
}

/**
 * The behaviour of the tool `db` on every database.
 * @param create a connected tool on an empty database that is closed and removed after the test
 */
export function runDbContract(name: string, create: (t: TestContext) => Promise<SqlDatabase>): void {
  async function withSchema(t: TestContext): Promise<SqlDatabase> {
    const db = await create(t)
    for (const statement of SCHEMA) await db.execute(statement)
    return db
  }
  const addAuthor = (db: Queryable, id: string, email = `${id}@example.com`) =>
    db.execute('INSERT INTO authors (id, email) VALUES ($1, $2)', [id, email])
  const countAuthors = async (db: Queryable) =>
    (await db.queryOne<{ n: number }>('SELECT count(*) AS n FROM authors'))?.n ?? -1

  describe(`db contract on ${name}`, () => {
    describe('statements', () => {
      test('query returns all rows, queryOne the first or null', async (t) => {
        const db = await withSchema(t)
        assert.deepEqual(await db.query('SELECT id FROM authors'), [])
        assert.equal(await db.queryOne('SELECT id FROM authors'), null)
        await addAuthor(db, 'a')
        await addAuthor(db, 'b')
        assert.deepEqual(await db.query('SELECT id FROM authors ORDER BY id'), [{ id: 'a' }, { id: 'b' }])
        assert.deepEqual(await db.queryOne('SELECT id FROM authors ORDER BY id DESC'), { id: 'b' })
      })

      test('execute counts the rows that it changed', async (t) => {
        const db = await withSchema(t)
        assert.deepEqual(await addAuthor(db, 'a'), { rowCount: 1, rows: [] })
        await addAuthor(db, 'b')
        assert.equal((await db.execute('UPDATE authors SET age = 4')).rowCount, 2)
        assert.equal((await db.execute('DELETE FROM authors WHERE id = $1', ['none'])).rowCount, 0)
        assert.equal((await db.execute('DELETE FROM authors')).rowCount, 2)
      })

      test('a statement may end with a semicolon and a comment', async (t) => {
        const db = await create(t)
        assert.deepEqual(await db.query('SELECT 1 AS n; -- one'), [{ n: 1 }])
      })

      test('execute counts the rows of a query, and none of a definition', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a')
        assert.deepEqual(await db.execute('SELECT id FROM authors'), { rowCount: 1, rows: [{ id: 'a' }] })
        assert.deepEqual(await db.execute('CREATE TABLE more (id TEXT)'), { rowCount: 0, rows: [] })
      })

      test('many statements at once are all answered, each with its own rows', async (t) => {
        const db = await create(t)
        const numbers = Array.from({ length: 300 }, (_, n) => n)
        const rows = await Promise.all(
          numbers.map((n) => db.queryOne<{ n: number }>('SELECT CAST($1 AS INTEGER) AS n', [n])),
        )
        assert.deepEqual(
          rows.map((row) => row?.n),
          numbers,
        )
      })

      test('a statement sees a table’s new shape', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a')
        const all = () => db.queryOne('SELECT * FROM authors')
        for (let n = 0; n < 3; n++) assert.deepEqual(await all(), { id: 'a', email: 'a@example.com', age: null })
        await db.execute(`ALTER TABLE authors ADD COLUMN city TEXT DEFAULT 'Lodz'`)
        assert.deepEqual(await all(), { id: 'a', email: 'a@example.com', age: null, city: 'Lodz' })
        await db.execute('ALTER TABLE authors DROP COLUMN city')
        assert.deepEqual(await db.transaction((tx) => tx.queryOne('SELECT * FROM authors')), {
          id: 'a',
          email: 'a@example.com',
          age: null,
        })
      })

      test('RETURNING rows come from execute, query and queryOne, and the write happens', async (t) => {
        const db = await withSchema(t)
        const insert = 'INSERT INTO authors (id, email) VALUES ($1, $2) RETURNING id, email'
        assert.deepEqual(await db.execute(insert, ['a', 'x']), { rowCount: 1, rows: [{ id: 'a', email: 'x' }] })
        assert.deepEqual(await db.query(insert, ['b', 'y']), [{ id: 'b', email: 'y' }])
        assert.deepEqual(await db.queryOne(insert, ['c', 'z']), { id: 'c', email: 'z' })
        assert.equal(await db.queryOne('DELETE FROM authors WHERE id = $1 RETURNING id', ['none']), null)
        assert.equal(await countAuthors(db), 3)
      })

      test('a placeholder can be used twice and in any order', async (t) => {
        const db = await withSchema(t)
        await db.execute('INSERT INTO authors (email, id) VALUES ($2, $1)', ['a', 'mail'])
        assert.deepEqual(
          await db.query('SELECT id FROM authors WHERE id = $1 OR (email = $2 AND id <> $2) OR id = $1', ['a', 'mail']),
          [{ id: 'a' }],
        )
      })

      test('what looks like a placeholder in a string, a comment or a quoted name is none', async (t) => {
        const db = await withSchema(t)
        const row = await db.queryOne(`SELECT '$2 ''$3' AS a, id AS "$4" /* $5 */ FROM authors -- $6\n WHERE id = $1`, [
          'x',
        ])
        assert.equal(row, null)
      })

      test('more or fewer values than placeholders are refused', async (t) => {
        const db = await withSchema(t)
        await rejectsWith('other', db.query('SELECT id FROM authors WHERE id = $1', []), /0 values/)
        await rejectsWith('other', db.execute('DELETE FROM authors WHERE id = $1', ['a', 'b']), /2 values/)
        await rejectsWith('other', db.query('SELECT id FROM authors', ['a']))
      })

      test('other placeholders, gaps in the numbers and several statements at once are syntax errors', async (t) => {
        const db = await withSchema(t)
        await rejectsWith('syntax', db.query('SELECT id FROM authors WHERE id = ?', ['a']))
        await rejectsWith('syntax', db.query('SELECT id FROM authors WHERE id = $2', ['a', 'b']))
        await rejectsWith('syntax', db.query('SELECT 1; SELECT 2'))
        await rejectsWith('syntax', db.query('SELEC 1'))
        await rejectsWith('syntax', db.query(''))
        await rejectsWith('syntax', db.query(' -- nothing\n;'))
        await rejectsWith('syntax', db.query('SELECT 1\0'))
        await rejectsWith('syntax', db.query('SELECT * FROM no_such_table'))
        await rejectsWith('syntax', db.execute('UPDATE authors SET no_such_column = 1'))
      })

      test('a statement that begins or ends a transaction is refused', async (t) => {
        const db = await withSchema(t)
        for (const sql of ['BEGIN', ' /* x */ commit', '-- x\nROLLBACK', 'SAVEPOINT s', 'END', 'RELEASE s']) {
          await rejectsWith('other', db.execute(sql), /db\.transaction/)
        }
        await db.transaction(async (tx) => rejectsWith('other', tx.execute('COMMIT'))).catch(() => {})
        await addAuthor(db, 'a')
        assert.equal(await countAuthors(db), 1)
      })

      test('writes that are issued together all happen, in any order', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a')
        const numbers = Array.from({ length: 50 }, (_, n) => String(n))
        await Promise.all(numbers.map((n) => db.execute('UPDATE authors SET email = email || $1', [`,${n}`])))
        const row = await db.queryOne<{ email: string }>('SELECT email FROM authors')
        assert.deepEqual(row?.email.split(',').sort(), ['a@example.com', ...numbers].sort())
      })

      test('a write that fails among others fails alone', async (t) => {
        const db = await withSchema(t)
        const results = await Promise.allSettled(['a', 'b', 'a', 'c'].map((id, n) => addAuthor(db, id, `mail-${n}`)))
        const refused = results.flatMap(({ status }, n) => (status === 'rejected' ? ['abac'[n]] : []))
        assert.deepEqual(refused, ['a'])
        assert.equal(await countAuthors(db), 3)
      })
    })

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
        const db = await withSchema(t)
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
        const db = await withSchema(t)
        assert.equal(await stored(db, 'flag', true), true)
        assert.equal(await stored(db, 'flag', false), false)
        assert.equal(await stored(db, 'flag', null), null)
      })

      test('floats, text, bytes and null come back as they went in', async (t) => {
        const db = await withSchema(t)
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
        const db = await withSchema(t)
        for (const ms of [1700000000123, 1700000000120, 1700000000000, -1]) {
          const iso = new Date(ms).toISOString()
          for (const column of ['at', 'moment', 'instant']) assert.equal(await stored(db, column, new Date(ms)), iso)
        }
      })

      test('NUMERIC comes back as a number', async (t) => {
        const db = await withSchema(t)
        for (const value of [0, 10, 12.5, -0.0001, 1234567890.1234])
          assert.equal(await stored(db, 'amount', value), value)
        assert.equal(await stored(db, 'amount', '12.50'), 12.5)
      })

      test('counts, sums and averages are numbers', async (t) => {
        const db = await withSchema(t)
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
        const db = await withSchema(t)
        for (const text of ['{"b": [1, null], "a":"ż"}', '[]', '"x"'])
          assert.equal(await stored(db, 'body', text), text)
      })

      test('a value is stored as the column wants it', async (t) => {
        const db = await withSchema(t)
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
        const db = await withSchema(t)
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
          await rejectsWith(
            'other',
            db.execute(`UPDATE samples SET note = $1`, [value as SqlValue]),
            /Parameter \$1 is/,
          )
        }
      })
    })

    describe('errors', () => {
      test('broken constraints have their kinds', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a')
        await db.execute(`INSERT INTO books (id, author_id) VALUES ('b', 'a')`)
        await rejectsWith('unique_violation', addAuthor(db, 'a', 'other'))
        await rejectsWith('unique_violation', addAuthor(db, 'z', 'a@example.com'))
        await rejectsWith('foreign_key_violation', db.execute(`INSERT INTO books (id, author_id) VALUES ('c', 'none')`))
        await rejectsWith('foreign_key_violation', db.execute(`DELETE FROM authors WHERE id = 'a'`))
        await rejectsWith('not_null_violation', db.execute(`INSERT INTO authors (id) VALUES ('n')`))
        await rejectsWith('check_violation', db.execute(`UPDATE authors SET age = -1`))
      })

      test('the error carries the driver’s own', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a')
        const error = await rejectsWith('unique_violation', addAuthor(db, 'a'))
        assert.ok(error.cause instanceof Error)
        assert.equal(error.message, error.cause.message)
      })
    })

    describe('transactions', () => {
      test('a transaction returns what its callback returns, and has committed by then', async (t) => {
        const db = await withSchema(t)
        const result = await db.transaction(async (tx) => {
          await addAuthor(tx, 'a')
          return countAuthors(tx)
        })
        assert.equal(result, 1)
        assert.equal(await countAuthors(db), 1)
      })

      test('a callback that rejects or throws rolls back, and its error comes out', async (t) => {
        const db = await withSchema(t)
        const fault = new Error('no')
        const rejected = db.transaction(async (tx) => {
          await addAuthor(tx, 'a')
          throw fault
        })
        await assert.rejects(rejected, (thrown) => thrown === fault)
        const threw = db.transaction(() => {
          throw fault
        })
        await assert.rejects(threw, (thrown) => thrown === fault)
        assert.equal(await countAuthors(db), 0)
      })

      test('nothing outside sees a transaction before its commit, and nothing joins it across an await', async (t) => {
        const db = await withSchema(t)
        const inside = gate()
        const goOn = gate()
        const transaction = db.transaction(async (tx) => {
          await addAuthor(tx, 'inside')
          inside.open()
          await goOn.opened
          throw new Error('rolled back')
        })
        await inside.opened
        assert.equal(await countAuthors(db), 0)
        const outside = addAuthor(db, 'outside')
        goOn.open()
        await assert.rejects(transaction, /rolled back/)
        await outside
        assert.deepEqual(await db.query('SELECT id FROM authors'), [{ id: 'outside' }])
      })

      test('a plain query inside of the callback sees committed data only, and does not wait', async (t) => {
        const db = await withSchema(t)
        await db.transaction(async (tx) => {
          await addAuthor(tx, 'a')
          assert.equal(await countAuthors(db), 0)
          assert.equal(await countAuthors(tx), 1)
        })
      })

      test('transactions that read and then write the same row lose no update', async (t) => {
        const db = await withSchema(t)
        await db.execute(`INSERT INTO authors (id, email, age) VALUES ('a', 'a', 0)`)
        await Promise.all(
          Array.from({ length: 20 }, () =>
            db.transaction(async (tx) => {
              const row = await tx.queryOne<{ age: number }>(`SELECT age FROM authors WHERE id = 'a' /* FOR UPDATE */`)
              await new Promise(setImmediate)
              await tx.execute(`UPDATE authors SET age = $1 WHERE id = 'a'`, [(row?.age ?? 0) + 1])
            }),
          ),
        )
        assert.deepEqual(await db.queryOne('SELECT age FROM authors'), { age: 20 })
      })

      test('of transactions that each look at what the others write, none acts on what is no longer so', async (t) => {
        const db = await withSchema(t)
        // Room for three: whoever still finds some takes it.
        await Promise.all(
          Array.from({ length: 10 }, (_, n) =>
            db.transaction(async (tx) => {
              const taken = await countAuthors(tx)
              await new Promise(setImmediate)
              if (taken < 3) await addAuthor(tx, `guest-${n}`)
            }),
          ),
        )
        assert.equal(await countAuthors(db), 3)
      })

      test('of transactions that are sent together each has its own result, and those that fail leave nothing', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'taken')
        const add = (id: string, end: (seen: number) => unknown) =>
          db.transaction(async (tx) => {
            await addAuthor(tx, id)
            return end(await countAuthors(tx))
          })
        await add('first', () => null)
        const results = await Promise.allSettled(
          Array.from({ length: 30 }, (_, n) => {
            if (n % 3 === 0) return add(`a${n}`, () => n)
            if (n % 3 === 1) return add('taken', () => n)
            return add(`b${n}`, () => Promise.reject(new Error(`no ${n}`)))
          }),
        )
        assert.deepEqual(
          results.map((result) =>
            result.status === 'fulfilled' ? result.value : (result.reason.kind ?? result.reason.message),
          ),
          Array.from({ length: 30 }, (_, n) => [n, 'unique_violation', `no ${n}`][n % 3]),
        )
        assert.equal(await countAuthors(db), 12)
      })

      test('statements of a transaction that are sent together run in the order in which they were sent', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'a', '')
        await db.transaction(async (tx) => {
          const numbers = Array.from({ length: 20 }, (_, n) => n)
          await Promise.all(numbers.map((n) => tx.execute('UPDATE authors SET email = email || $1', [`${n},`])))
        })
        const row = await db.queryOne<{ email: string }>('SELECT email FROM authors')
        assert.equal(row?.email, Array.from({ length: 20 }, (_, n) => `${n},`).join(''))
      })

      test('a statement that the callback did not wait for is part of the transaction', async (t) => {
        const db = await withSchema(t)
        await db.transaction(async (tx) => {
          void addAuthor(tx, 'a')
        })
        assert.equal(await countAuthors(db), 1)
      })

      test('more transactions than there are connections wait for their turn, plain statements in them included', async (t) => {
        const db = await withSchema(t)
        await Promise.all(
          Array.from({ length: 40 }, (_, n) =>
            db.transaction(async (tx) => {
              await addAuthor(tx, `a${n}`)
              await db.query('SELECT id FROM books')
            }),
          ),
        )
        assert.equal(await countAuthors(db), 40)
      })

      test('a constraint that is checked at the end refuses the commit', async (t) => {
        const db = await withSchema(t)
        await db.execute(
          'CREATE TABLE notes (id TEXT, author_id TEXT REFERENCES authors (id) DEFERRABLE INITIALLY DEFERRED)',
        )
        await rejectsWith(
          'foreign_key_violation',
          db.transaction((tx) => tx.execute(`INSERT INTO notes VALUES ('n', 'none')`)),
        )
        assert.deepEqual(await db.query('SELECT * FROM notes'), [])
        await db.transaction(async (tx) => {
          await tx.execute(`INSERT INTO notes VALUES ('n', 'late')`)
          await addAuthor(tx, 'late')
        })
        assert.equal((await db.query('SELECT * FROM notes')).length, 1)
      })

      test('a transaction without a statement for 10 s is rolled back', async (t) => {
        const db = await withSchema(t)
        const transaction = db.transaction(async (tx) => {
          await addAuthor(tx, 'a')
          await new Promise(() => {})
        })
        await rejectsWith('timeout', transaction, /10000 ms without a statement/)
        assert.equal(await countAuthors(db), 0)
        await addAuthor(db, 'b')
      })

      test('a failed statement dooms its transaction even when the callback catches the error', async (t) => {
        const db = await withSchema(t)
        await addAuthor(db, 'taken')
        const transaction = db.transaction(async (tx) => {
          await addAuthor(tx, 'a')
          await rejectsWith('unique_violation', addAuthor(tx, 'taken'))
          await rejectsWith('other', addAuthor(tx, 'b'), /has failed/)
        })
        await rejectsWith('unique_violation', transaction)
        assert.deepEqual(await db.query('SELECT id FROM authors'), [{ id: 'taken' }])
      })

      test('tx refuses statements once its transaction is over', async (t) => {
        const db = await withSchema(t)
        let kept: Queryable | undefined
        await db.transaction(async (tx) => {
          kept = tx
        })
        await rejectsWith('other', addAuthor(kept!, 'late'), /over/)
        await rejectsWith('other', kept!.query('SELECT 1'), /over/)
        assert.equal(await countAuthors(db), 0)
      })
    })

    test('healthCheck is true while the database answers', async (t) => {
      const db = await create(t)
      assert.equal(await db.healthCheck(), true)
    })
  })
}
