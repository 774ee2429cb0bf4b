import { fork } from 'node:child_process'
import { once } from 'node:events'

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

/**
 * Two inserts in a transaction, one side after the other in the same thread, with the same setting of SQLite.
 * @param profileDir where the process leaves its CPU profile
 */
export async function measureTransactions(plan: TransactionPlan, profileDir?: string): Promise<TransactionFigures> {
  const child = fork(new URL('./transactions-process.ts', import.meta.url), [JSON.stringify(plan)], {
    execArgv: [
      '--import',
      import.meta.resolve('tsx'),
      ...(profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []),
    ],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const exited = once(child, 'exit')
  const figures = await Promise.race([
    once(child, 'message').then(([message]) => message as TransactionFigures),
    exited.then(([code]) => {
      throw new Error(`the benchmark of transactions ended with code ${code}`)
    }),
  ])
  await exited
  return figures
}
