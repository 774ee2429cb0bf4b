// CPU of a job of pg-boss: plain, and with a priority in a queue that runs one job of a key at a time.
import PgBoss from 'pg-boss'
import { STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import { CALLERS, type CostPlan, type Costs, costOf, WORKERS } from './job-costs.ts'

export default async function measureBoss(plan: CostPlan): Promise<Costs> {
  const boss = new PgBoss({ ...plan.access, max: CALLERS })
  boss.on('error', () => {})
  await boss.start()
  try {
    return {
      plain: await measured(boss, plan, 'plain', () => boss.send('plain', STORED_PAYLOAD)),
      // A key of its own for each job: workers that meet the same one fail, and poll again.
      used: await measured(boss, plan, 'used', (n) =>
        boss.send('used', STORED_PAYLOAD, { priority: n % 3, singletonKey: `job-${n}` }),
      ),
    }
  } finally {
    await boss.stop({ graceful: false, wait: true })
  }
}

/** Its own workers poll every half second at the shortest, and would mostly wait. */
async function measured(boss: PgBoss, plan: CostPlan, name: string, add: (n: number) => Promise<unknown>) {
  await boss.createQueue(name, { name, policy: name === 'used' ? 'singleton' : 'standard' })
  let handled = 0
  let isOver = false
  const worker = async (): Promise<void> => {
    while (!isOver) {
      const jobs = await boss.fetch(name)
      for (const { id } of jobs) {
        await boss.complete(name, id)
        handled++
      }
      if (jobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const workers = Array.from({ length: WORKERS }, worker)
  const cost = await costOf(plan, add, () => handled)
  isOver = true
  await Promise.all(workers)
  return cost
}
