import pg from 'pg'
import { logContract } from '../../contracts/log.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const LEFT =
  'SELECT (SELECT count(*) FROM heddle_event) + (SELECT count(*) FROM heddle_delivery) + (SELECT count(*) FROM heddle_copy) AS count'

/** So many processes take part, and have shared the keys out. */
const together = (count: number): string => `
  SELECT (SELECT count(*) FROM heddle_process WHERE is_ready = 1) = ${count} AND (SELECT count(DISTINCT holder) FROM heddle_slot) = ${count}
    AND NOT EXISTS (SELECT 1 FROM heddle_slot WHERE heir <> 0 OR holder = 0) AS are`

logContract(
  'PostgreSQL',
  (owner) =>
    benchOn(owner, async (of, hasOwnServer) => {
      // What it has acknowledged must outlive its crash.
      const server = await postgresServer({ ...of, skip: () => {} }, { own: hasOwnServer, durable: hasOwnServer })
      if (server === null) return null
      const { host, port, user, password, database } = server
      const pool = new pg.Pool({ host, port, user, password, database, max: 1, idleTimeoutMillis: 0 })
      pool.on('error', () => {})
      of.after(() => pool.end())
      const env = {
        ...server.env,
        EVENT_BUS_DRIVER: 'database',
        RDB_DATABASE: database,
        TOOLS_DIR: await toolsDirWith(of, 'postgres'),
      }
      return {
        env,
        left: async () => Number((await pool.query(LEFT)).rows[0].count),
        together: async (count) => {
          await until(async () => (await pool.query(together(count))).rows[0].are, `${count} processes`, 60_000)
        },
        server: hasOwnServer
          ? {
              stop: () => server.stop('immediate'),
              start: () => server.start(),
              freeze: () => server.freeze(),
              thaw: () => server.thaw(),
            }
          : null,
      }
    }),
  {
    'an event that ends its process each time is a dead letter in the end, and what was in hand with it is handled': {
      reason: 'without a guardian what has died with it twice is a letter before it is tried alone',
      failsWith: /events handled by work/,
    },
  },
)
