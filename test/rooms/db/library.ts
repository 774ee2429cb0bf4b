import type { TestContext } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import type { SqlDatabase } from '../../../src/stores/sql/database.ts'

// Types that both databases take; SQLite stores by value, whatever the name.
const SCHEMA = [
  `CREATE TABLE authors (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, age INTEGER CHECK (age >= 0))`,
  `CREATE TABLE books (id TEXT PRIMARY KEY, author_id TEXT NOT NULL REFERENCES authors (id) ON DELETE RESTRICT, title TEXT)`,
  `CREATE TABLE samples (id TEXT PRIMARY KEY, big BIGINT, small INTEGER, ratio DOUBLE PRECISION, amount NUMERIC(20, 4), flag BOOLEAN,
     bytes BYTEA, at TEXT, moment TIMESTAMP, instant TIMESTAMPTZ, body JSON, note TEXT)`,
]

/** A connected tool on an empty database that is closed and removed after the test. */
export type CreateDatabase = (t: TestContext) => Promise<SqlDatabase>

/** A database with authors and their books, and a table with a column of each type. */
export async function libraryOn(t: TestContext, create: CreateDatabase): Promise<SqlDatabase> {
  const db = await create(t)
  for (const statement of SCHEMA) await db.execute(statement)
  return db
}

export const addAuthor = (db: Queryable, id: string, email = `${id}@example.com`) =>
  db.execute('INSERT INTO authors (id, email) VALUES ($1, $2)', [id, email])

export const countAuthors = async (db: Queryable) =>
  (await db.queryOne<{ n: number }>('SELECT count(*) AS n FROM authors'))?.n ?? -1
