import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface QueuePlan {
  access: { host: string; port: number; user: string; password: string; database: string }
  /** Length of the bare loop. */
  measureMs: number
  /** Jobs of each queue. */
  jobs: number
}

/** Events or jobs per second that are stored, handled and forgotten. */
export interface QueueFigures {
  /** 100 inserts in a statement, then they are deleted, on one connection. */
  bare: number
  graphileWorker: number
  pgBoss: number
}

/** The driver alone and two job queues, in a process of their own. */
export async function measureQueues(plan: QueuePlan): Promise<QueueFigures> {
  const child = fork(new URL('./queues-process.ts', import.meta.url), [JSON.stringify(plan)], {
    execArgv: ['--import', import.meta.resolve('tsx')],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const exited = once(child, 'exit')
  const figures = await Promise.race([
    once(child, 'message').then(([message]) => message as QueueFigures),
    exited.then(([code]) => {
      throw new Error(`the benchmark of queues ended with code ${code}`)
    }),
  ])
  await exited
  return figures
}
