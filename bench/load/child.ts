// The load generator's process: it gets one plan after another over IPC, and ends together with its parent.

import type { LoadMessage, LoadResult, RateResult } from './plan.ts'
import { runLoad, runRates } from './runs.ts'

function reply(message: LoadMessage): void {
  process.send?.(message)
}

process.on('disconnect', () => process.exit(0))
process.on('message', (message: LoadMessage) => {
  if (message.kind !== 'plan' && message.kind !== 'rate-plan') return
  const running = message.kind === 'plan' ? runLoad(message.plan) : runRates(message.plan)
  running.then(
    (result: LoadResult | RateResult) => reply({ kind: 'result', result }),
    (error: unknown) => reply({ kind: 'failed', error: String(error) }),
  )
})
