import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Pool } from 'pg'

export default (get: (name: string) => string) => {
  const db = drizzle(new Pool({ connectionString: get('TRIAL_PG'), max: 4 }))
  return async () => (await db.execute(sql`SELECT 1 + 1 AS sum`)).rows
}
