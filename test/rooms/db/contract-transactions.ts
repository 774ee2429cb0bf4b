import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import { gate } from './fixture.ts'
import { addAuthor, type CreateDatabase, countAuthors, libraryOn } from './library.ts'
import { rejectsWith } from './rejects-with.ts'

/** What a transaction is on every database. */
export function describeTransactions(create: CreateDatabase): void {
  describe('transactions', () => {
    test('a transaction returns what its callback returns, and has committed by then', async (t) => {
      const db = await libraryOn(t, create)
      const result = await db.transaction(async (tx) => {
        await addAuthor(tx, 'a')
        return countAuthors(tx)
      })
      assert.equal(result, 1)
      assert.equal(await countAuthors(db), 1)
    })

    test('a callback that rejects or throws rolls back, and its error comes out', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      await db.transaction(async (tx) => {
        await addAuthor(tx, 'a')
        assert.equal(await countAuthors(db), 0)
        assert.equal(await countAuthors(tx), 1)
      })
    })

    test('transactions that read and then write the same row lose no update', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      await addAuthor(db, 'a', '')
      await db.transaction(async (tx) => {
        const numbers = Array.from({ length: 20 }, (_, n) => n)
        await Promise.all(numbers.map((n) => tx.execute('UPDATE authors SET email = email || $1', [`${n},`])))
      })
      const row = await db.queryOne<{ email: string }>('SELECT email FROM authors')
      assert.equal(row?.email, Array.from({ length: 20 }, (_, n) => `${n},`).join(''))
    })

    test('a statement that the callback did not wait for is part of the transaction', async (t) => {
      const db = await libraryOn(t, create)
      await db.transaction(async (tx) => {
        void addAuthor(tx, 'a')
      })
      assert.equal(await countAuthors(db), 1)
    })

    test('more transactions than there are connections wait for their turn, plain statements in them included', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      const transaction = db.transaction(async (tx) => {
        await addAuthor(tx, 'a')
        await new Promise(() => {})
      })
      await rejectsWith('timeout', transaction, /10000 ms without a statement/)
      assert.equal(await countAuthors(db), 0)
      await addAuthor(db, 'b')
    })

    test('a failed statement dooms its transaction even when the callback catches the error', async (t) => {
      const db = await libraryOn(t, create)
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
      const db = await libraryOn(t, create)
      let kept: Queryable | undefined
      await db.transaction(async (tx) => {
        kept = tx
      })
      await rejectsWith('other', addAuthor(kept!, 'late'), /over/)
      await rejectsWith('other', kept!.query('SELECT 1'), /over/)
      assert.equal(await countAuthors(db), 0)
    })
  })
}
