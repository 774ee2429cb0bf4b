// A separate process: the same transactions through the tool and through better-sqlite3 alone, in turn; sends the figures over IPC.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db, TransactionCompanion } from '../../src/contracts/db.ts'
import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import SqliteDb from '../../src/tools/sqlite/index.ts'
import { planOf, sendFigures } from '../child.ts'
import { proxy } from '../micro/proxied-tool.ts'
import { median } from '../report.ts'

export interface TransactionPlan {
  synchronous: 'full' | 'normal'
  /** Callers of the tool that each wait for their transaction before they begin the next. */
  callers: number
  /** Length of one measured window; both sides have one in each round. */
  measureMs: number
  rounds: number
}

export interface TransactionSide {
  /** Transactions per second: the median of the rounds. */
  perSecond: number
  /** CPU time of the process, user and system, per transaction in microseconds: the median of the rounds. */
  cpuUs: number
  /** Transactions per second, round by round. */
  rounds: number[]
}

export interface TransactionFigures {
  /** `db.transaction` with two `tx.execute`, through the tool-call proxy. */
  heddle: TransactionSide
  /** BEGIN IMMEDIATE, two INSERTs, COMMIT of better-sqlite3, one after another. */
  bare: TransactionSide
  /** The median of the rounds' ratios. */
  ratio: number
  /** Rows of acknowledged transactions that are not there. */
  lost: number
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

interface Window {
  count: number
  perSecond: number
  cpuUs: number
}

const plan = planOf<TransactionPlan>()
const folder = mkdtempSync(join(tmpdir(), 'heddle-bench-'))
const barePath = join(folder, 'bare.db')
const bare = new Database(barePath)
bare.pragma('journal_mode = WAL')
bare.pragma(`synchronous = ${plan.synchronous}`)
bare.pragma('foreign_keys = ON')
bare.exec(TABLE)
const [begin, insert, commit] = ['BEGIN IMMEDIATE', INSERT, 'COMMIT'].map((sql) => bare.prepare<unknown[]>(sql))

const metered = proxy()
const tool = new SqliteDb(runtimeFor(join(folder, 'heddle.db')))
await tool.boot()
await tool.execute(TABLE)
const db = metered<Db>('db', tool.api({ name: 'bench', instance: undefined }))

const sides = {
  heddle: async (endMs: number) => {
    let count = 0
    const caller = async (): Promise<void> => {
      while (performance.now() < endMs) {
        await db.transaction(async (tx) => {
          await tx.execute(INSERT, ['first', NOTE])
          await tx.execute(INSERT, ['second', NOTE])
        })
        count++
      }
    }
    await Promise.all(Array.from({ length: plan.callers }, caller))
    return count
  },
  bare: async (endMs: number) => {
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
}
const windows: Record<keyof typeof sides, Window[]> = { heddle: [], bare: [] }
let heddleCount = 0
for (const run of Object.values(sides)) await run(performance.now() + 1000)
heddleCount = (await stored()) / 2
for (let round = 0; round < plan.rounds; round++) {
  const order: (keyof typeof sides)[] = round % 2 === 0 ? ['heddle', 'bare'] : ['bare', 'heddle']
  for (const side of order) windows[side].push(await measure(sides[side]))
}
for (const { count } of windows.heddle) heddleCount += count
const lost = heddleCount * 2 - (await stored())
await tool.stop()
bare.close()
rmSync(folder, { recursive: true })

const [heddle, other] = [sideOf(windows.heddle), sideOf(windows.bare)]
const ratio = median(windows.heddle.map(({ perSecond }, round) => perSecond / windows.bare[round]!.perSecond)) ?? 0
const figures: TransactionFigures = { heddle, bare: other, ratio, lost }
sendFigures(figures)

async function measure(run: (endMs: number) => Promise<number>): Promise<Window> {
  const startedMs = performance.now()
  const cpu = process.cpuUsage()
  const count = await run(startedMs + plan.measureMs)
  const { user, system } = process.cpuUsage(cpu)
  return { count, perSecond: (count * 1000) / (performance.now() - startedMs), cpuUs: (user + system) / count }
}

function sideOf(rounds: readonly Window[]): TransactionSide {
  return {
    perSecond: median(rounds.map(({ perSecond }) => perSecond)) ?? 0,
    cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)) ?? 0,
    rounds: rounds.map(({ perSecond }) => perSecond),
  }
}

async function stored(): Promise<number> {
  return (await tool.queryOne<{ n: number }>('SELECT max(id) AS n FROM bench_rows'))?.n ?? 0
}

/** The tool as a thread has it that is alone with the file. */
function runtimeFor(sqlitePath: string): ToolRuntime {
  const { synchronous } = plan
  const runtime: Partial<ToolRuntime> = {
    thread: { kind: 'primary' },
    settings: {
      sqlitePath,
      sqliteSynchronous: synchronous,
      rdbStatementTimeoutMs: 30_000,
      dbAutoMigrate: true,
      domainsDir: [],
    } as unknown as ToolRuntime['settings'],
    log: () => {},
    sharedMemory: (_, byteLength) => new SharedArrayBuffer(byteLength),
    // As in a lane, the statements of a transaction are metered, too.
    instrument: (tx) => metered('db', tx),
    host: { bus: { beginTransaction: () => NO_EVENTS } } as unknown as ToolRuntime['host'],
  }
  return runtime as ToolRuntime
}
