import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addAuthor, type CreateDatabase, countAuthors, libraryOn } from './library.ts'
import { rejectsWith } from './rejects-with.ts'

/** What `query`, `queryOne` and `execute` do on every database. */
export function describeStatements(create: CreateDatabase): void {
  describe('statements', () => {
    test('query returns all rows, queryOne the first or null', async (t) => {
      const db = await libraryOn(t, create)
      assert.deepEqual(await db.query('SELECT id FROM authors'), [])
      assert.equal(await db.queryOne('SELECT id FROM authors'), null)
      await addAuthor(db, 'a')
      await addAuthor(db, 'b')
      assert.deepEqual(await db.query('SELECT id FROM authors ORDER BY id'), [{ id: 'a' }, { id: 'b' }])
      assert.deepEqual(await db.queryOne('SELECT id FROM authors ORDER BY id DESC'), { id: 'b' })
    })

    test('execute counts the rows that it changed', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      const insert = 'INSERT INTO authors (id, email) VALUES ($1, $2) RETURNING id, email'
      assert.deepEqual(await db.execute(insert, ['a', 'x']), { rowCount: 1, rows: [{ id: 'a', email: 'x' }] })
      assert.deepEqual(await db.query(insert, ['b', 'y']), [{ id: 'b', email: 'y' }])
      assert.deepEqual(await db.queryOne(insert, ['c', 'z']), { id: 'c', email: 'z' })
      assert.equal(await db.queryOne('DELETE FROM authors WHERE id = $1 RETURNING id', ['none']), null)
      assert.equal(await countAuthors(db), 3)
    })

    test('a placeholder can be used twice and in any order', async (t) => {
      const db = await libraryOn(t, create)
      await db.execute('INSERT INTO authors (email, id) VALUES ($2, $1)', ['a', 'mail'])
      assert.deepEqual(
        await db.query('SELECT id FROM authors WHERE id = $1 OR (email = $2 AND id <> $2) OR id = $1', ['a', 'mail']),
        [{ id: 'a' }],
      )
    })

    test('what looks like a placeholder in a string, a comment or a quoted name is none', async (t) => {
      const db = await libraryOn(t, create)
      const row = await db.queryOne(`SELECT '$2 ''$3' AS a, id AS "$4" /* $5 */ FROM authors -- $6\n WHERE id = $1`, [
        'x',
      ])
      assert.equal(row, null)
    })

    test('more or fewer values than placeholders are refused', async (t) => {
      const db = await libraryOn(t, create)
      await rejectsWith('other', db.query('SELECT id FROM authors WHERE id = $1', []), /0 values/)
      await rejectsWith('other', db.execute('DELETE FROM authors WHERE id = $1', ['a', 'b']), /2 values/)
      await rejectsWith('other', db.query('SELECT id FROM authors', ['a']))
    })

    test('other placeholders, gaps in the numbers and several statements at once are syntax errors', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      for (const sql of ['BEGIN', ' /* x */ commit', '-- x\nROLLBACK', 'SAVEPOINT s', 'END', 'RELEASE s']) {
        await rejectsWith('other', db.execute(sql), /db\.transaction/)
      }
      await db.transaction(async (tx) => rejectsWith('other', tx.execute('COMMIT'))).catch(() => {})
      await addAuthor(db, 'a')
      assert.equal(await countAuthors(db), 1)
    })

    test('writes that are issued together all happen, in any order', async (t) => {
      const db = await libraryOn(t, create)
      await addAuthor(db, 'a')
      const numbers = Array.from({ length: 50 }, (_, n) => String(n))
      await Promise.all(numbers.map((n) => db.execute('UPDATE authors SET email = email || $1', [`,${n}`])))
      const row = await db.queryOne<{ email: string }>('SELECT email FROM authors')
      assert.deepEqual(row?.email.split(',').sort(), ['a@example.com', ...numbers].sort())
    })

    test('a write that fails among others fails alone', async (t) => {
      const db = await libraryOn(t, create)
      const results = await Promise.allSettled(['a', 'b', 'a', 'c'].map((id, n) => addAuthor(db, id, `mail-${n}`)))
      const refused = results.flatMap(({ status }, n) => (status === 'rejected' ? ['abac'[n]] : []))
      assert.deepEqual(refused, ['a'])
      assert.equal(await countAuthors(db), 3)
    })
  })

  describe('errors', () => {
    test('broken constraints have their kinds', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      await addAuthor(db, 'a')
      const error = await rejectsWith('unique_violation', addAuthor(db, 'a'))
      assert.ok(error.cause instanceof Error)
      assert.equal(error.message, error.cause.message)
    })
  })
}
