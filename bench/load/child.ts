// The load generator's process: takes one plan after another over IPC, ends when the parent is gone.
import { runLoad } from './load-run.ts'
import type { LoadMessage } from './plan.ts'

function reply(message: LoadMessage): void {
  process.send?.(message)
}

process.on('disconnect', () => process.exit(0))
process.on('message', (message: LoadMessage) => {
  if (message.kind !== 'plan') return
  runLoad(message.plan).then(
    (result) => reply({ kind: 'result', result }),
    (error: unknown) => reply({ kind: 'failed', error: String(error) }),
  )
})
