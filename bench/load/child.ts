// The load generator's process: it gets one plan after another over IPC, and ends together with its parent.
import type { LoadPlan, LoadReply, RatePlan } from './plan.ts'
import { runLoad, runRates } from './runs.ts'

process.on('disconnect', () => process.exit(0))
process.on('message', async (plan: LoadPlan | RatePlan) => {
  const running = 'streams' in plan ? runRates(plan) : runLoad(plan)
  const reply: LoadReply = await running.catch((error: unknown) => ({ error: String(error) }))
  process.send?.(reply)
})
