import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { count, eq, inArray, relations, sql } from 'drizzle-orm'
import * as pg from 'drizzle-orm/pg-core'
import * as sqlite from 'drizzle-orm/sqlite-core'
import { type Db, DbError } from '#heddle'
import { drizzlePg, drizzleSqlite } from '#heddle/drizzle'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { onPostgres, onSqlite } from './plugin-db.ts'

const AT = new Date('2026-01-02T03:04:05.678Z')

async function createTables(db: Db): Promise<void> {
  await db.execute(
    'CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, active BOOLEAN, at TIMESTAMP, seen TIMESTAMPTZ, price NUMERIC(30, 10))',
  )
  await db.execute('CREATE TABLE pets (id TEXT PRIMARY KEY, owner_id TEXT NOT NULL REFERENCES people (id), name TEXT)')
}

const sqlitePeople = sqlite.sqliteTable('people', {
  id: sqlite.text().primaryKey(),
  name: sqlite.text().notNull(),
  active: sqlite.integer({ mode: 'boolean' }),
  at: sqlite.integer({ mode: 'timestamp_ms' }),
})
const sqlitePets = sqlite.sqliteTable('pets', {
  id: sqlite.text().primaryKey(),
  ownerId: sqlite.text('owner_id').notNull(),
  name: sqlite.text(),
})
const sqliteSchema = {
  people: sqlitePeople,
  pets: sqlitePets,
  peopleRelations: relations(sqlitePeople, ({ many }) => ({ pets: many(sqlitePets) })),
  petsRelations: relations(sqlitePets, ({ one }) => ({
    owner: one(sqlitePeople, { fields: [sqlitePets.ownerId], references: [sqlitePeople.id] }),
  })),
}

const pgPeople = pg.pgTable('people', {
  id: pg.text().primaryKey(),
  name: pg.text().notNull(),
  active: pg.boolean(),
  at: pg.timestamp(),
  seen: pg.timestamp({ withTimezone: true, mode: 'string' }),
  price: pg.numeric(),
})
const pgPets = pg.pgTable('pets', {
  id: pg.text().primaryKey(),
  ownerId: pg.text('owner_id').notNull(),
  name: pg.text(),
})
const pgSchema = {
  people: pgPeople,
  pets: pgPets,
  peopleRelations: relations(pgPeople, ({ many }) => ({ pets: many(pgPets) })),
  petsRelations: relations(pgPets, ({ one }) => ({
    owner: one(pgPeople, { fields: [pgPets.ownerId], references: [pgPeople.id] }),
  })),
}

describe('Drizzle on SQLite', () => {
  async function open(t: Parameters<typeof onSqlite>[0]) {
    const { db, delivered } = await onSqlite(t)
    await createTables(db)
    const orm = drizzleSqlite(db, { schema: sqliteSchema })
    await orm.insert(sqlitePeople).values([
      { id: 'a', name: "A'da", active: true, at: AT },
      { id: 'b', name: 'Bob' },
    ])
    await orm.insert(sqlitePets).values({ id: 'p', ownerId: 'a', name: 'Rex' })
    return { db, orm, delivered }
  }

  test('its builder finds columns of one name in two tables, and relations', async (t) => {
    const { orm } = await open(t)
    const [first] = await orm
      .select()
      .from(sqlitePeople)
      .innerJoin(sqlitePets, eq(sqlitePets.ownerId, sqlitePeople.id))
      .where(inArray(sqlitePeople.id, ['a', 'b']))
    assert.deepEqual(first, {
      people: { id: 'a', name: "A'da", active: true, at: AT },
      pets: { id: 'p', ownerId: 'a', name: 'Rex' },
    })
    const found = await orm.query.people.findMany({
      with: { pets: true },
      orderBy: (people, { asc }) => asc(people.id),
    })
    assert.deepEqual(
      found.map(({ id, at, pets }) => [id, at?.getTime(), pets.map(({ name }) => name)]),
      [
        ['a', AT.getTime(), ['Rex']],
        ['b', undefined, []],
      ],
    )
    assert.equal(await orm.$count(sqlitePeople), 2)
    assert.deepEqual(
      await orm
        .update(sqlitePeople)
        .set({ name: 'B' })
        .where(eq(sqlitePeople.id, 'b'))
        .returning({ name: sqlitePeople.name }),
      [{ name: 'B' }],
    )
    assert.equal(await orm.select().from(sqlitePeople).where(eq(sqlitePeople.id, 'z')).get(), undefined)
  })

  test('its transaction is one of db: rows and events exist together, or neither does', async (t) => {
    const { db, orm, delivered } = await open(t)
    const id = await orm.transaction(async (tx) => {
      await tx.insert(sqlitePeople).values({ id: 'c', name: 'Cy' })
      assert.equal((await tx.query.people.findFirst({ where: eq(sqlitePeople.id, 'c') }))?.name, 'Cy')
      return tx.publish('person.added', { id: 'c' })
    })
    await db.transaction((tx) => orm.in(tx).insert(sqlitePeople).values({ id: 'd', name: 'Dee' }).run())
    await assert.rejects(
      orm.transaction(async (tx) => {
        await tx.insert(sqlitePeople).values({ id: 'e', name: 'Eve' })
        await tx.publish('person.added', { id: 'e' })
        tx.rollback()
      }),
      /Rollback/,
    )
    assert.deepEqual(delivered, [id])
    assert.deepEqual(await orm.select({ n: count() }).from(sqlitePeople), [{ n: 4 }])
  })

  test('the other dialect is refused by name', async (t) => {
    const { db } = await onSqlite(t)
    assert.throws(
      () => drizzlePg(db),
      (thrown) => thrown instanceof DbError && /use drizzleSqlite/.test(thrown.message),
    )
  })
})

describeOnPostgres('Drizzle on PostgreSQL', (server) => {
  const create = onPostgres(server)

  async function open(t: Parameters<typeof create>[0]) {
    const { db, delivered } = await create(t)
    await createTables(db)
    const orm = drizzlePg(db, { schema: pgSchema })
    const ada = {
      id: 'a',
      name: "A'da",
      active: true,
      at: AT,
      seen: AT.toISOString(),
      price: '12345678901234567890.123',
    }
    await orm.insert(pgPeople).values([ada, { id: 'b', name: 'Bob' }])
    await orm.insert(pgPets).values({ id: 'p', ownerId: 'a', name: 'Rex' })
    return { db, orm, delivered }
  }

  test('its builder finds columns of one name in two tables, and relations', async (t) => {
    const { orm } = await open(t)
    const [first] = await orm.select().from(pgPeople).innerJoin(pgPets, eq(pgPets.ownerId, pgPeople.id))
    assert.deepEqual(first, {
      people: {
        id: 'a',
        name: "A'da",
        active: true,
        at: AT,
        seen: '2026-01-02 03:04:05.678+00',
        price: '12345678901234567890.1230000000',
      },
      pets: { id: 'p', ownerId: 'a', name: 'Rex' },
    })
    const found = await orm.query.people.findMany({
      with: { pets: true },
      orderBy: (people, { asc }) => asc(people.id),
    })
    assert.deepEqual(
      found.map(({ id, at, pets }) => [id, at?.getTime(), pets.map(({ name }) => name)]),
      [
        ['a', AT.getTime(), ['Rex']],
        ['b', undefined, []],
      ],
    )
    assert.equal(await orm.$count(pgPeople), 2)
    assert.deepEqual([...(await orm.execute(sql`SELECT name FROM people WHERE id = ${'b'}`))], [{ name: 'Bob' }])
  })

  test('its transaction is one of db: rows and events exist together, or neither does', async (t) => {
    const { db, orm, delivered } = await open(t)
    const id = await orm.transaction(async (tx) => {
      await tx.insert(pgPeople).values({ id: 'c', name: 'Cy' })
      assert.equal((await tx.query.people.findFirst({ where: eq(pgPeople.id, 'c') }))?.name, 'Cy')
      return tx.publish('person.added', { id: 'c' })
    })
    await db.transaction((tx) => orm.in(tx).insert(pgPeople).values({ id: 'd', name: 'Dee' }))
    await assert.rejects(
      orm.transaction(async (tx) => {
        await tx.insert(pgPeople).values({ id: 'e', name: 'Eve' })
        await tx.publish('person.added', { id: 'e' })
        tx.rollback()
      }),
      /Rollback/,
    )
    assert.deepEqual(delivered, [id])
    assert.deepEqual(await orm.select({ n: count() }).from(pgPeople), [{ n: 4 }])
  })
})
