import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Generated, sql } from 'kysely'
import { DbError, HeddleError } from '#heddle'
import { keysetPage, kysely } from '#heddle/kysely'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { type CreatePluginDb, onPostgres, onSqlite } from './plugin-db.ts'

interface Schema {
  people: { id: string; name: string; age: number | null; active: Generated<boolean> }
  pets: { id: string; owner_id: string; name: string }
}

function runKyselySuite(name: string, create: CreatePluginDb): void {
  describe(`Kysely on ${name}`, () => {
    async function open(t: Parameters<CreatePluginDb>[0]) {
      const { db, delivered } = await create(t)
      const k = kysely<Schema>(db)
      await k.schema
        .createTable('people')
        .addColumn('id', 'text', (column) => column.primaryKey())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('age', 'integer')
        .addColumn('active', 'boolean', (column) => column.notNull().defaultTo(true))
        .execute()
      await k.schema
        .createTable('pets')
        .addColumn('id', 'text', (column) => column.primaryKey())
        .addColumn('owner_id', 'text', (column) => column.notNull().references('people.id'))
        .addColumn('name', 'text', (column) => column.notNull())
        .execute()
      await k
        .insertInto('people')
        .values([
          { id: 'a', name: "A'da", age: 36 },
          { id: 'b', name: 'Bob', age: null },
        ])
        .execute()
      await k.insertInto('pets').values({ id: 'p', owner_id: 'a', name: 'Rex' }).execute()
      return { db, k, delivered }
    }

    test('its builder selects, joins, updates and deletes', async (t) => {
      const { k } = await open(t)
      assert.deepEqual(
        await k.selectFrom('people').selectAll().where('name', '=', "A'da").where('active', '=', true).execute(),
        [{ id: 'a', name: "A'da", age: 36, active: true }],
      )
      assert.deepEqual(
        await k
          .selectFrom('people')
          .leftJoin('pets', 'pets.owner_id', 'people.id')
          .select(['people.name as owner', 'pets.name as pet'])
          .where('people.id', 'in', ['a', 'b'])
          .orderBy('people.id')
          .execute(),
        [
          { owner: "A'da", pet: 'Rex' },
          { owner: 'Bob', pet: null },
        ],
      )
      const updated = await k.updateTable('people').set({ age: 1 }).where('age', 'is', null).executeTakeFirst()
      assert.equal(updated.numUpdatedRows, 1n)
      const gone = await k.deleteFrom('pets').where('id', '=', 'p').returning('name').executeTakeFirstOrThrow()
      assert.deepEqual(gone, { name: 'Rex' })
      const { rows } = await sql<{ n: number }>`SELECT count(*) AS n FROM people WHERE id <> ${'z'}`.execute(k)
      assert.deepEqual(rows, [{ n: 2 }])
    })

    test('what it inserts twice is a DbError that says so', async (t) => {
      const { k } = await open(t)
      await assert.rejects(
        k.insertInto('people').values({ id: 'a', name: 'Again' }).execute(),
        (thrown) => thrown instanceof DbError && thrown.kind === 'unique_violation',
      )
    })

    test('its transaction is one of db: rows and events exist together, or neither does', async (t) => {
      const { db, k, delivered } = await open(t)
      const id = await k.transaction().execute(async (trx) => {
        await trx.insertInto('people').values({ id: 'c', name: 'Cy' }).execute()
        assert.equal(trx.isTransaction, true)
        return trx.publish('person.added', { id: 'c' })
      })
      assert.deepEqual(delivered, [id])
      const second = await db.transaction(async (tx) => {
        await k.in(tx).insertInto('people').values({ id: 'd', name: 'Dee' }).execute()
        return tx.publish('person.added', { id: 'd' })
      })
      assert.deepEqual(delivered, [id, second])
      await assert.rejects(
        k.transaction().execute(async (trx) => {
          await trx.insertInto('people').values({ id: 'e', name: 'Eve' }).execute()
          await trx.publish('person.added', { id: 'e' })
          throw new Error('no')
        }),
        /^Error: no$/,
      )
      assert.deepEqual(delivered, [id, second])
      const left = await k.selectFrom('people').select('id').orderBy('id').execute()
      assert.deepEqual(left.map((row) => row.id).join(''), 'abcd')
    })

    test('transactions that collide are run again, and none of their steps is lost', async (t) => {
      const { k } = await open(t)
      await Promise.all(
        Array.from({ length: 8 }, () =>
          k.transaction().execute(async (trx) => {
            const { age } = await trx.selectFrom('people').select('age').where('id', '=', 'a').executeTakeFirstOrThrow()
            await trx
              .updateTable('people')
              .set({ age: age! + 1 })
              .where('id', '=', 'a')
              .execute()
          }),
        ),
      )
      assert.deepEqual(await k.selectFrom('people').select('age').where('id', '=', 'a').execute(), [{ age: 44 }])
    })

    test('a query is read page by page, ordered by columns as it names them', async (t) => {
      const { k } = await open(t)
      const more = ['c', 'd', 'e'].map((id) => ({ id, name: 'Bob', age: 7 }))
      await k.insertInto('people').values(more).execute()
      const rows = k
        .selectFrom('people')
        .leftJoin('pets', 'pets.owner_id', 'people.id')
        .select(['people.id as person', 'people.name as called', 'pets.name as pet'])
        .where('people.id', '<>', 'd')
      const pages: string[][] = []
      for (let after: string | null | undefined; after !== null; ) {
        const page = await keysetPage(k, {
          rows,
          orderBy: [{ column: 'called', direction: 'desc' }, 'person'],
          limit: 2,
          after,
        })
        pages.push(page.rows.map(({ person, pet }) => `${person} ${pet}`))
        after = page.next
      }
      assert.deepEqual(pages, [
        ['b null', 'c null'],
        ['e null', 'a Rex'],
      ])
      const inTransaction = await k
        .transaction()
        .execute((trx) => keysetPage(trx, { rows, orderBy: ['person'], limit: 9 }))
      assert.equal(inTransaction.rows.length, 4)
      await assert.rejects(
        keysetPage(k, { rows, orderBy: ['person'], limit: 2, after: 'nonsense' }),
        (thrown) => thrown instanceof HeddleError && thrown.code === 'HTTP_BAD_REQUEST',
      )
    })

    test('what the tool cannot do is refused', async (t) => {
      const { k } = await open(t)
      await assert.rejects(k.startTransaction().execute(), /transaction\(\)\.execute/)
      await assert.rejects(async () => {
        for await (const _ of k.selectFrom('people').selectAll().stream()) assert.fail()
      }, /does not stream/)
    })
  })
}

runKyselySuite('SQLite', onSqlite)
describeOnPostgres('Kysely on PostgreSQL', (server) => runKyselySuite('PostgreSQL', onPostgres(server)))
