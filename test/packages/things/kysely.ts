import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool } from 'pg'

export default (get: (name: string) => string) => {
  const pool = new Pool({ connectionString: get('TRIAL_PG'), max: 4 })
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  return async () => (await sql`SELECT 1 + 1 AS sum`.execute(db)).rows
}
