import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
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

/** The same of both dialects; each has types of its own, which the compiler holds to in `open` and in the tests of one dialect. */
type Orm = ReturnType<typeof drizzleSqlite<typeof sqliteSchema>>

interface Opened {
  db: Db
  orm: Orm
  delivered: string[]
}

/** @param ada the row of somebody, as it is read; `open` has written it, Bob, and a pet */
function runDrizzleSuite(
  open: (t: TestContext) => Promise<Opened>,
  { people, pets }: Pick<typeof sqliteSchema, 'people' | 'pets'>,
  ada: object,
): void {
  test('its builder finds columns of one name in two tables, and relations', async (t) => {
    const { orm } = await open(t)
    const [first] = await orm
      .select()
      .from(people)
      .innerJoin(pets, eq(pets.ownerId, people.id))
      .where(inArray(people.id, ['a', 'b']))
    assert.deepEqual(first, { people: ada, pets: { id: 'p', ownerId: 'a', name: 'Rex' } })
    const found = await orm.query.people.findMany({ with: { pets: true }, orderBy: (row, { asc }) => asc(row.id) })
    assert.deepEqual(
      found.map(({ id, at, pets: own }) => [id, at?.getTime(), own.map(({ name }) => name)]),
      [
        ['a', AT.getTime(), ['Rex']],
        ['b', undefined, []],
      ],
    )
    assert.equal(await orm.$count(people), 2)
    const renamed = orm.update(people).set({ name: 'B' }).where(eq(people.id, 'b')).returning({ name: people.name })
    assert.deepEqual(await renamed, [{ name: 'B' }])
  })

  test('its transaction is one of db: rows and events exist together, or neither does', async (t) => {
    const { db, orm, delivered } = await open(t)
    const id = await orm.transaction(async (tx) => {
      await tx.insert(people).values({ id: 'c', name: 'Cy' })
      assert.equal((await tx.query.people.findFirst({ where: eq(people.id, 'c') }))?.name, 'Cy')
      return tx.publish('person.added', { id: 'c' })
    })
    await db.transaction(async (tx) => void (await orm.in(tx).insert(people).values({ id: 'd', name: 'Dee' })))
    await assert.rejects(
      orm.transaction(async (tx) => {
        await tx.insert(people).values({ id: 'e', name: 'Eve' })
        await tx.publish('person.added', { id: 'e' })
        tx.rollback()
      }),
      /Rollback/,
    )
    assert.deepEqual(delivered, [id])
    assert.deepEqual(await orm.select({ n: count() }).from(people), [{ n: 4 }])
  })
}

describe('Drizzle on SQLite', () => {
  const ada = { id: 'a', name: "A'da", active: true, at: AT }

  async function open(t: TestContext): Promise<Opened> {
    const { db, delivered } = await onSqlite(t)
    await createTables(db)
    const orm = drizzleSqlite(db, { schema: sqliteSchema })
    await orm.insert(sqlitePeople).values([ada, { id: 'b', name: 'Bob' }])
    await orm.insert(sqlitePets).values({ id: 'p', ownerId: 'a', name: 'Rex' })
    return { db, orm, delivered }
  }

  runDrizzleSuite(open, sqliteSchema, ada)

  test('one row is asked for, and there may be none', async (t) => {
    const { orm } = await open(t)
    assert.equal(await orm.select().from(sqlitePeople).where(eq(sqlitePeople.id, 'z')).get(), undefined)
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
  const ada = { id: 'a', name: "A'da", active: true, at: AT, seen: AT.toISOString(), price: '12345678901234567890.123' }

  async function openPg(t: TestContext) {
    const { db, delivered } = await create(t)
    await createTables(db)
    const orm = drizzlePg(db, { schema: pgSchema })
    await orm.insert(pgPeople).values([ada, { id: 'b', name: 'Bob' }])
    await orm.insert(pgPets).values({ id: 'p', ownerId: 'a', name: 'Rex' })
    return { db, orm, delivered }
  }

  runDrizzleSuite(async (t) => (await openPg(t)) as unknown as Opened, pgSchema as unknown as typeof sqliteSchema, {
    ...ada,
    seen: '2026-01-02 03:04:05.678+00',
    price: '12345678901234567890.1230000000',
  })

  test('a statement of its own is sent as it is, and types are those of its dialect', async (t) => {
    const { orm, delivered } = await openPg(t)
    const id = await orm.transaction(async (tx) => {
      await tx.update(pgPeople).set({ seen: AT.toISOString() }).where(eq(pgPeople.id, 'b'))
      return tx.publish('person.added', { id: 'b' })
    })
    assert.deepEqual(delivered, [id])
    assert.deepEqual([...(await orm.execute(sql`SELECT name FROM people WHERE id = ${'b'}`))], [{ name: 'Bob' }])
  })
})
