// A separate process: reads the same rows through the tool and through pg alone, in turn, and sends the figures over IPC.
import pg from 'pg'
import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { loadSettings } from '../../src/core/config/load.ts'
import PostgresDb from '../../src/extras/postgres/index.ts'
import { planOf, sendFigures } from '../child.ts'
import { proxied, runtimeWith } from '../micro/proxied-tool.ts'
import { callers, inWindows, ratioOf, type WindowPlan, type WindowSide } from '../windows.ts'

/** A database in which the benchmark may create a table. */
export interface DbAccess {
  host: string
  port: number
  user: string
  password: string
  database: string
}

export interface DbPlan extends WindowPlan {
  access: DbAccess
  /** Connections of each side. */
  connections: number
  /** Callers that each wait for their row before they ask for the next. */
  callers: number
}

export interface DbFigures {
  /** `db.query` through the tool-call proxy. */
  heddle: WindowSide
  /** `pool.query(text, values)` of pg. */
  bare: WindowSide
  /** The same with a name, so that pg prepares it too. */
  bareNamed: WindowSide
  /** heddle's rate over bare's: the median of the rounds' ratios. */
  ratio: number
  /** heddle's rate over that of pg with a name, likewise. */
  ratioNamed: number
}

const ROWS = 10_000
const SELECT = 'SELECT id, name, email, created_at FROM bench_users WHERE id = $1'

const plan = planOf<DbPlan>()
const { access, connections } = plan
const pool = new pg.Pool({ ...access, max: connections, min: connections })
pool.on('error', () => {})
await fill(pool)
const tool = new PostgresDb(runtimeFor(access, connections))
const db = proxied<PostgresDb>('db', tool)

const reading = (read: (id: string) => Promise<unknown>) =>
  callers(plan.callers, (caller, n) => read(`user-${(caller + n * 7) % ROWS}`))
const { heddle, bare, bareNamed } = await inWindows(
  {
    heddle: reading((id) => db.query(SELECT, [id])),
    bare: reading((id) => pool.query(SELECT, [id])),
    bareNamed: reading((id) => pool.query({ name: 'read', text: SELECT, values: [id] })),
  },
  plan,
)
await tool.stop()
await pool.query('DROP TABLE bench_users')
await pool.end()

const figures: DbFigures = {
  heddle,
  bare,
  bareNamed,
  ratio: ratioOf(heddle, bare),
  ratioNamed: ratioOf(heddle, bareNamed),
}
sendFigures(figures)

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
