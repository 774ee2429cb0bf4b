// The same events by a loop of the driver alone, and by two job queues of npm.
import { Logger, run as startWorker } from 'graphile-worker'
import pg from 'pg'
import PgBoss from 'pg-boss'
import { STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import type { DbAccess } from '../elastic/db.ts'
import measureBareLoop from './bare-loop.ts'

export interface QueuePlan {
  access: DbAccess
  /** Length of the bare loop. */
  measureMs: number
  /** Jobs of each queue. */
  jobs: number
}

/** Callers that add jobs at the same time, and workers that take one job at a time each. */
const CALLERS = 64
const WORKERS = 10
const QUEUE = 'bench-tick'

/** Events or jobs per second that are stored, handled and forgotten. */
export default async function measureQueues({ access, measureMs, jobs }: QueuePlan) {
  const pool = new pg.Pool({ ...access, max: CALLERS })
  pool.on('error', () => {})
  const figures = {
    bare: await measureBareLoop({ access, measureMs }),
    graphileWorker: await graphileWorker(pool, jobs),
    pgBoss: await pgBoss(access),
  }
  await pool.end()
  return figures
}

/**
 * @param add adds one job
 * @returns jobs per second, from the first that is added to the last that is done
 */
async function throughput(jobs: number, add: () => Promise<unknown>, handled: () => number): Promise<number> {
  const before = handled()
  const startMs = performance.now()
  let added = 0
  const caller = async (): Promise<void> => {
    while (added++ < jobs) await add()
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  while (handled() - before < jobs) await new Promise((resolve) => setTimeout(resolve, 2))
  return (jobs / (performance.now() - startMs)) * 1000
}

async function graphileWorker(pool: pg.Pool, jobs: number): Promise<number> {
  let handled = 0
  const runner = await startWorker({
    pgPool: pool,
    concurrency: WORKERS,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    taskList: { [QUEUE]: () => void handled++ },
  })
  try {
    return await throughput(
      jobs,
      () => runner.addJob(QUEUE, STORED_PAYLOAD),
      () => handled,
    )
  } finally {
    await runner.stop()
  }
}

async function pgBoss(access: DbAccess): Promise<number> {
  let handled = 0
  const boss = new PgBoss({ ...access, max: CALLERS })
  boss.on('error', () => {})
  await boss.start()
  try {
    await boss.createQueue(QUEUE)
    // Half a second is its shortest pause between two looks.
    const options = { pollingIntervalSeconds: 0.5, batchSize: 1 }
    for (let n = 0; n < WORKERS; n++) await boss.work(QUEUE, options, async () => void handled++)
    return await throughput(
      // Its workers look for a job every half second: more jobs only take longer.
      WORKERS * 10,
      () => boss.send(QUEUE, STORED_PAYLOAD),
      () => handled,
    )
  } finally {
    await boss.stop({ graceful: false, wait: true })
  }
}
