import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Sql, SqlValue } from '../../../src/contracts/db.ts'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import { sql } from '../../../src/core/sql/fragment.ts'
import { keysetPage } from '../../../src/core/sql/keyset.ts'
import type { SqlDatabase } from '../../../src/stores/sql/database.ts'
import type { CreateDatabase } from './library.ts'
import { rejectsWith } from './rejects-with.ts'

interface Author {
  id: string
  name: string | null
  age: number
}

const AUTHORS: Author[] = [
  { id: 'a', name: 'Ada', age: 36 },
  { id: 'b', name: "Bo'b", age: 20 },
  { id: 'c', name: null, age: 36 },
  { id: 'd', name: 'Dee', age: 50 },
  { id: 'e', name: 'Eve', age: 20 },
]

async function writersOn(t: TestContext, create: CreateDatabase): Promise<SqlDatabase> {
  const db = await create(t)
  await db.execute('CREATE TABLE writers (id TEXT PRIMARY KEY, name TEXT, age INTEGER)')
  await db.execute(sql`INSERT INTO writers ${sql.rows(['id', 'name', 'age'], AUTHORS)}`)
  return db
}

/** What composed statements do on every database. */
export function describeFragments(create: CreateDatabase): void {
  describe('composed statements', () => {
    test('values are parameters, fragments are text, in query, queryOne, execute and in a transaction', async (t) => {
      const db = await writersOn(t, create)
      const ids = async (condition: Sql) =>
        (await db.query<Author>(sql`SELECT id FROM writers WHERE ${condition} ORDER BY id`))
          .map(({ id }) => id)
          .join('')
      assert.equal(await ids(sql`name = ${"Bo'b"}`), 'b')
      assert.equal(await ids(sql.in('id', ['a', 'c', '1; DROP TABLE writers'])), 'ac')
      assert.equal(await ids(sql.in('id', [])), '')
      assert.equal(await ids(sql.in('age', [])), '')
      assert.equal(await ids(sql.notIn(sql.id('writers', 'age'), [36])), 'bde')
      assert.equal(await ids(sql.notIn('age', [])), 'abcde')
      assert.equal(await ids(sql`age IN ${sql.list([20, 50])}`), 'bde')
      const old = sql`age > ${30}`
      assert.equal(await ids(sql.and([old, false, sql.or([sql`name IS NULL`, sql`id = ${'d'}`])])), 'cd')
      assert.equal(await ids(sql.and([undefined, null])), 'abcde')
      assert.equal(await ids(sql.or([])), '')

      await db.transaction(async (tx) => {
        await tx.execute(
          sql`UPDATE writers SET ${sql.set({ name: 'Cy', age: sql`age + ${1}`, id: undefined })} WHERE id = ${'c'}`,
        )
        assert.deepEqual(await tx.queryOne(sql`SELECT name, age FROM writers WHERE id = ${'c'}`), {
          name: 'Cy',
          age: 37,
        })
        assert.equal((await tx.query(sql`SELECT ${sql.join([sql.id('id'), sql.id('age')])} FROM writers`)).length, 5)
      })
      assert.deepEqual(await db.queryOne(sql`SELECT name FROM writers WHERE id = ${'c'}`), { name: 'Cy' })
    })

    test('a name in quotes is a name, whatever it holds', async (t) => {
      const db = await create(t)
      assert.deepEqual(await db.queryOne(sql`SELECT 1 AS ${sql.id('a "b" -- c')}`), { 'a "b" -- c': 1 })
    })

    test('what is no fragment is refused, and so are values beside one', async (t) => {
      const db = await create(t)
      const forged = JSON.parse('{"text": "SELECT 1", "values": []}') as Sql
      await rejectsWith('other', db.query(forged))
      await rejectsWith(
        'other',
        db.transaction((tx) => tx.query(forged)),
      )
      await rejectsWith('other', db.query(sql`SELECT 1`, [1]))
      await rejectsWith('other', db.query(sql`SELECT CAST(${undefined as unknown as SqlValue} AS TEXT)`))
    })
  })

  describe('pages', () => {
    test('each row is on one page, in both directions, while others come and go', async (t) => {
      const db = await writersOn(t, create)
      const pages: string[] = []
      let after: string | null = null
      do {
        const page: { rows: Author[]; next: string | null } = await keysetPage<Author>(db, {
          rows: sql`SELECT id, age FROM writers WHERE age < ${60}`,
          orderBy: [{ column: 'age', direction: 'desc' }, 'id'],
          limit: 2,
          after,
        })
        pages.push(page.rows.map(({ id }) => id).join(''))
        after = page.next
        if (pages.length === 1) await db.execute("INSERT INTO writers (id, age) VALUES ('z', 55)")
      } while (after !== null)
      assert.deepEqual(pages, ['da', 'cb', 'e'])
    })

    test('a page that is exactly full is the last one where nothing follows', async (t) => {
      const db = await writersOn(t, create)
      const options = { rows: sql`SELECT id FROM writers`, orderBy: ['id'], limit: 5 } as const
      const { rows, next } = await db.transaction((tx) => keysetPage<{ id: string }>(tx, options))
      assert.deepEqual([rows.length, next], [5, null])
    })

    test('times and large integers keep their place', async (t) => {
      const db = await create(t)
      await db.execute('CREATE TABLE moments (at TIMESTAMP NOT NULL, n BIGINT NOT NULL)')
      const at = new Date('2026-01-02T03:04:05.678Z')
      const moments = [0n, 1n, 2n].map((step) => ({ at, n: 2n ** 60n + step }))
      await db.execute(sql`INSERT INTO moments ${sql.rows(['at', 'n'], moments)}`)
      const seen: bigint[] = []
      for (let after: string | null | undefined; after !== null; ) {
        const page: { rows: { n: bigint }[]; next: string | null } = await keysetPage<{ at: string; n: bigint }>(db, {
          rows: sql`SELECT * FROM moments`,
          orderBy: ['at', 'n'],
          limit: 1,
          after,
        })
        seen.push(...page.rows.map(({ n }) => n))
        after = page.next
      }
      assert.deepEqual(
        seen,
        moments.map(({ n }) => n),
      )
    })

    test('a cursor that is none is the fault of the client', async (t) => {
      const db = await writersOn(t, create)
      for (const after of ['x', 'bnVsbA', Buffer.from('[1,2]').toString('base64url'), 'a'.repeat(9000)]) {
        await assert.rejects(
          keysetPage<Author>(db, { rows: sql`SELECT id FROM writers`, orderBy: ['id'], limit: 1, after }),
          (thrown) => thrown instanceof HeddleError && thrown.status === 400,
        )
      }
    })
  })
}
