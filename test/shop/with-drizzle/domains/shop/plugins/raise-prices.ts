import { integer as pgInteger, pgTable, text as pgText } from 'drizzle-orm/pg-core'
import { sql } from 'drizzle-orm/sql'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { type Db, plugin } from '#heddle'
import { drizzlePg, drizzleSqlite } from '#heddle/drizzle'

const onSqlite = sqliteTable('products', { id: text('id').primaryKey(), cents: integer('price_cents').notNull() })
const onPostgres = pgTable('products', { id: pgText('id').primaryKey(), cents: pgInteger('price_cents').notNull() })

/** `POST /prices`: all prices rise by one, in a transaction of Drizzle, which reads what it has written. */
export default plugin(({ db, http }) => {
  const raise = raising(db)

  http.post('/prices', async () => ({ success: true, data: await raise() }))
})

function raising(db: Db): () => Promise<number[]> {
  if (db.dialect === 'sqlite') {
    const orm = drizzleSqlite(db)
    return () =>
      orm.transaction(async (tx) => {
        await tx.update(onSqlite).set({ cents: sql`${onSqlite.cents} + 1` })
        return (await tx.select().from(onSqlite)).map(({ cents }) => cents)
      })
  }
  const orm = drizzlePg(db)
  return () =>
    orm.transaction(async (tx) => {
      await tx.update(onPostgres).set({ cents: sql`${onPostgres.cents} + 1` })
      return (await tx.select().from(onPostgres)).map(({ cents }) => cents)
    })
}
