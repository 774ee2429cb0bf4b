import { fork } from 'node:child_process'
import { once } from 'node:events'

/** A database in which the benchmark may create a table. */
export interface DbAccess {
  host: string
  port: number
  user: string
  password: string
  database: string
}

export interface DbPlan {
  access: DbAccess
  /** Connections of each side. */
  connections: number
  /** Callers that each wait for their row before they ask for the next. */
  callers: number
  /** Length of one measured window; every side has one in each round. */
  measureMs: number
  /** How often the sides are measured, in turn. */
  rounds: number
}

export interface DbSide {
  /** Queries per second: the median of the rounds. */
  perSecond: number
  /** CPU time of this process, user and system, per query in microseconds: the median of the rounds. */
  cpuUs: number
  /** Queries per second, round by round. */
  rounds: number[]
}

export interface DbFigures {
  /** `db.query` through the tool-call proxy. */
  heddle: DbSide
  /** `pool.query(text, values)` of pg. */
  bare: DbSide
  /** The same with a name, so that pg prepares it too. */
  bareNamed: DbSide
  /** heddle's rate over bare's: the median of the rounds' ratios. */
  ratio: number
  /** heddle's rate over that of pg with a name, likewise. */
  ratioNamed: number
}

/**
 * Reads rows by their key, one side after the other in the same process, on the same server.
 * @param profileDir where the process leaves its CPU profile
 */
export async function measureDb(plan: DbPlan, profileDir?: string): Promise<DbFigures> {
  const child = fork(new URL('./db-process.ts', import.meta.url), {
    execArgv: [
      '--import',
      import.meta.resolve('tsx'),
      ...(profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []),
    ],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  child.send(plan)
  const exited = once(child, 'exit')
  const figures = await Promise.race([
    once(child, 'message').then(([message]) => message as DbFigures),
    exited.then(([code]) => {
      throw new Error(`the benchmark of the database ended with code ${code}`)
    }),
  ])
  await exited
  return figures
}
