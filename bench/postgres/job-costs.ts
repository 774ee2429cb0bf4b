// CPU of a job of a queue of npm, in a process of its own.
import { processCpuUs, treeCpuUs } from '../cpu.ts'
import type { DbAccess } from '../elastic/db.ts'
import type { JobCost } from '../peers/bullmq/plan.ts'

export interface CostPlan {
  access: DbAccess
  /** Of the server. */
  postmaster: number
  jobs: number
}

export const TENANTS = 100
/** Callers that add jobs at the same time, and workers that take one job at a time each. */
export const CALLERS = 64
export const WORKERS = 10

export type Costs = Record<'plain' | 'used', JobCost>
export type MeasureJobs = (plan: CostPlan) => Promise<Costs>

/** What it takes to add and handle jobs. @param add the job of this number @param handled how many jobs were handled */
export async function costOf(
  { postmaster, jobs }: CostPlan,
  add: (n: number) => Promise<unknown>,
  handled: () => number,
): Promise<JobCost> {
  const clocks = () => [processCpuUs(process.pid), treeCpuUs(postmaster)] as const
  const [before, handledBefore] = [clocks(), handled()]
  await addAll(jobs, add)
  while (handled() - handledBefore < jobs) await new Promise((resolve) => setTimeout(resolve, 5))
  const [ownUs, serverUs] = clocks().map((us, n) => (us - before[n]!) / jobs)
  return { ownUs: ownUs!, serverUs: serverUs! }
}

export async function addAll(jobs: number, add: (n: number) => Promise<unknown>): Promise<void> {
  let added = 0
  const caller = async (): Promise<void> => {
    while (added < jobs) await add(added++)
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}
