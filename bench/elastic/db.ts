// The same rows read through the tool and through pg alone, in turn.
import pg from 'pg'
import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { loadSettings } from '../../src/core/config/load.ts'
import PostgresDb from '../../src/extras/postgres/index.ts'
import type { PostgresServer } from '../../test/support/servers/postgres.ts'
import { proxied, runtimeWith } from '../micro/proxied-tool.ts'
import { callers, inWindows, ratioOf, type WindowPlan } from '../windows.ts'

/** A database in which the benchmark may create a table. */
export type DbAccess = Pick<PostgresServer, 'host' | 'port' | 'user' | 'password' | 'database'>

export interface DbPlan extends WindowPlan {
  access: DbAccess
  /** Connections of each side. */
  connections: number
  /** Callers that each wait for their row before they ask for the next. */
  callers: number
}

const ROWS = 10_000
const SELECT = 'SELECT id, name, email, created_at FROM bench_users WHERE id = $1'

export default async function measureQueries(plan: DbPlan) {
  const { access, connections } = plan
  const pool = new pg.Pool({ ...access, max: connections, min: connections })
  pool.on('error', () => {})
  await fill(pool)
  const tool = new PostgresDb(runtimeFor(access, connections))
  const db = proxied<PostgresDb>('db', tool)

  const reading = (read: (id: string) => Promise<unknown>) =>
    callers(plan.callers, (caller, n) => read(`user-${(caller + n * 7) % ROWS}`))
  const sides = await inWindows(
    {
      /** Through the tool-call proxy. */
      heddle: reading((id) => db.query(SELECT, [id])),
      bare: reading((id) => pool.query(SELECT, [id])),
      /** With a name, so that pg prepares it too. */
      bareNamed: reading((id) => pool.query({ name: 'read', text: SELECT, values: [id] })),
    },
    plan,
  )
  await tool.stop()
  await pool.query('DROP TABLE bench_users')
  await pool.end()
  return { ...sides, ratioNamed: ratioOf(sides.heddle, sides.bareNamed) }
}

async function fill(target: pg.Pool): Promise<void> {
  await target.query('DROP TABLE IF EXISTS bench_users')
  await target.query(
    'CREATE TABLE bench_users (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, created_at TEXT NOT NULL)',
  )
  await target.query(
    `INSERT INTO bench_users SELECT 'user-' || n, 'User ' || n, 'user-' || n || '@example.com', '2026-01-01T00:00:00.000Z'
     FROM generate_series(0, ${ROWS - 1}) AS n`,
  )
  await target.query('ANALYZE bench_users')
}

/** The tool as a lane has it, with one lane; the process may open two more connections for the primary. */
function runtimeFor({ host, port, user, password, database }: DbAccess, max: number): ToolRuntime {
  const { settings } = loadSettings({
    AUTH_SECRET_KEY: 'x'.repeat(32),
    RDB_HOST: host,
    RDB_PORT: String(port),
    RDB_USER: user,
    RDB_PASSWORD: password,
    RDB_DATABASE: database,
    RDB_MAX_POOL: String(max + 2),
    RDB_MIN_POOL: String(max),
    LANES: '1',
    REPLICA_ID: 'bench',
  })
  return runtimeWith({ settings })
}
