import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface LoopPlan {
  synchronous: 'full' | 'normal'
  /** Length of each loop. */
  measureMs: number
}

/** Events per second that are stored and forgotten. */
export interface LoopFigures {
  /** 20 inserts in a commit, then the run is deleted. */
  bare: number
  /** A table that is polled, one task at a time. */
  poll: number
}

/** Loops of better-sqlite3 alone, in a process of their own. */
export async function measureLoops(plan: LoopPlan): Promise<LoopFigures> {
  const child = fork(new URL('./log-loops-process.ts', import.meta.url), [JSON.stringify(plan)], {
    execArgv: ['--import', import.meta.resolve('tsx')],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const exited = once(child, 'exit')
  const figures = await Promise.race([
    once(child, 'message').then(([message]) => message as LoopFigures),
    exited.then(([code]) => {
      throw new Error(`the benchmark of loops ended with code ${code}`)
    }),
  ])
  await exited
  return figures
}
