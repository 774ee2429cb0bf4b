// The same transactions through the tool and through better-sqlite3 alone, in turn.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db, TransactionCompanion } from '../../src/contracts/db.ts'
import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import SqliteDb from '../../src/tools/sqlite/index.ts'
import { proxy, runtimeWith } from '../micro/proxied-tool.ts'
import { callers, inWindows, ratioOf, type WindowPlan } from '../windows.ts'

export interface TransactionPlan extends WindowPlan {
  synchronous: 'full' | 'normal'
  /** Callers of the tool that each wait for their transaction before they begin the next. */
  callers: number
}

const TABLE = 'CREATE TABLE bench_rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT)'
const INSERT = 'INSERT INTO bench_rows (name, note) VALUES ($1, $2)'
const NOTE = 'a note of usual length'
/** Transactions between two looks at the clock. */
const RUN = 64

/** A plugin's transaction has a companion, whether it publishes or not. */
const NO_EVENTS: TransactionCompanion = {
  extend: ({ query, queryOne, execute }) => ({ query, queryOne, execute }),
  own: null,
  hasLastStatements: false,
  lastStatements: () => [],
  committed: () => {},
  rolledBack: () => {},
  unknown: () => {},
}

export default async function measureTransactions(plan: TransactionPlan) {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-bench-'))
  const barePath = join(folder, 'bare.db')
  const bare = new Database(barePath)
  bare.pragma('journal_mode = WAL')
  bare.pragma(`synchronous = ${plan.synchronous}`)
  bare.pragma('foreign_keys = ON')
  bare.exec(TABLE)
  const [begin, insert, commit] = ['BEGIN IMMEDIATE', INSERT, 'COMMIT'].map((sql) => bare.prepare<unknown[]>(sql))

  const metered = proxy()
  const tool = new SqliteDb(runtimeFor(join(folder, 'heddle.db'), plan.synchronous, metered))
  await tool.boot()
  await tool.execute(TABLE)
  const db = metered<Db>('db', tool.api({ name: 'bench', instance: undefined }))

  const { heddle, bare: driver } = await inWindows(
    {
      heddle: callers(plan.callers, () =>
        db.transaction(async (tx) => {
          await tx.execute(INSERT, ['first', NOTE])
          await tx.execute(INSERT, ['second', NOTE])
        }),
      ),
      bare: (endMs) => {
        let count = 0
        for (; performance.now() < endMs; count += RUN) {
          for (let n = 0; n < RUN; n++) {
            begin!.run()
            insert!.run({ 1: 'first', 2: NOTE })
            insert!.run({ 1: 'second', 2: NOTE })
            commit!.run()
          }
        }
        return count
      },
    },
    plan,
  )
  const stored = await tool.queryOne<{ n: number }>('SELECT max(id) AS n FROM bench_rows')
  await tool.stop()
  bare.close()
  rmSync(folder, { recursive: true })
  return {
    heddle,
    bare: driver,
    ratio: ratioOf(heddle, driver),
    /** Rows of acknowledged transactions that are not there. */
    lost: heddle.count * 2 - (stored?.n ?? 0),
  }
}

/** The tool as a thread has it that is alone with the file. */
function runtimeFor(sqlitePath: string, sqliteSynchronous: string, metered: ReturnType<typeof proxy>): ToolRuntime {
  return runtimeWith({
    thread: { kind: 'primary' },
    settings: {
      sqlitePath,
      sqliteSynchronous,
      rdbStatementTimeoutMs: 30_000,
      dbAutoMigrate: true,
      domainsDir: [],
    },
    // As in a lane, the statements of a transaction are metered, too.
    instrument: (tx: object) => metered('db', tx),
    host: { bus: { beginTransaction: () => NO_EVENTS } },
  })
}
