// CPU of a job of graphile-worker: plain, and with a priority in the queue of its tenant.
import { Logger, run as startWorker } from 'graphile-worker'
import pg from 'pg'
import { STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import { CALLERS, type CostPlan, type Costs, costOf, TENANTS, WORKERS } from './job-costs.ts'

export default async function measureGraphile(plan: CostPlan): Promise<Costs> {
  const pool = new pg.Pool({ ...plan.access, max: CALLERS })
  pool.on('error', () => {})
  let handled = 0
  const runner = await startWorker({
    pgPool: pool,
    concurrency: WORKERS,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    taskList: { tick: () => void handled++ },
  })
  const plain = () => runner.addJob('tick', STORED_PAYLOAD)
  const used = (n: number) =>
    runner.addJob('tick', STORED_PAYLOAD, { queueName: `tenant-${n % TENANTS}`, priority: (n % 3) - 1 })
  try {
    return { plain: await costOf(plan, plain, () => handled), used: await costOf(plan, used, () => handled) }
  } finally {
    await runner.stop()
    await pool.end()
  }
}
