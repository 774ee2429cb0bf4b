// That the tables of the runtime are nobody else's.
import type { Queryable } from '../../contracts/db.ts'
import type { ToolRuntime } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { DbError } from '../../core/errors/db-error.ts'

/** A superuser is in all roles, and must not run triggers of others either: so not by `pg_has_role`. */
const FOREIGN = `
  WITH RECURSIVE mine (oid) AS (
    SELECT oid FROM pg_roles WHERE rolname = current_user
    UNION SELECT roleid FROM pg_auth_members JOIN mine ON member = mine.oid)
  SELECT relname AS name, pg_get_userbyid(relowner) AS owner FROM pg_class
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relowner NOT IN (SELECT oid FROM mine)
    AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND (relname LIKE 'heddle\\_%' OR relname = '_migrations')
  ORDER BY relname LIMIT 1`

/**
 * Whoever may make a table where the runtime looks for one of its own, with a trigger in it, would have that run as the runtime's user.
 * @throws DATABASE_FOREIGN when one belongs to another role; DbError, also when the schema is missing
 */
export async function requireOwnTables(db: Queryable, settings: ToolRuntime['settings']): Promise<void> {
  const { rdbUser: user, rdbSchema: schema, dbAutoMigrate } = settings
  if ((await db.queryOne('SELECT 1 AS one FROM pg_namespace WHERE nspname = $1', [schema])) === null) {
    if (!dbAutoMigrate)
      throw new DbError('other', `There is no schema "${schema}" (RDB_SCHEMA): CREATE SCHEMA "${schema}"`)
    await db.execute(`CREATE SCHEMA IF NOT EXISTS "${schema}"`)
  }
  const foreign = await db.queryOne<{ name: string; owner: string }>(FOREIGN, [schema])
  if (foreign === null) return
  const { name, owner } = foreign
  throw new HeddleError(
    'DATABASE_FOREIGN',
    `${name} in the schema ${schema} belongs to the role ${owner}, which ${user} is not in: if it is yours, ALTER TABLE ${schema}.${name} OWNER TO ${user}; otherwise drop it, and let nobody else create tables in this schema`,
  )
}
