import type { EventBus } from '../../contracts/event-bus.ts'
import { ConfigFaults, copyEnvironment, EXIT_CONFIG, loadSettings, prepareEnvironment } from '../../core/config/load.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { Runtime } from '../../primary/assembly/runtime.ts'
import { createLog } from '../../primary/logging/log.ts'
import type { FromChild, ToChild } from './child-messages.ts'
import { pendingAfter } from './pending.ts'

/** The process that a test has booted: the runtime as `npm start` has it, and beside it somebody who tells the test what happens. */
async function main(): Promise<void> {
  const { settings } = loadSettings(copyEnvironment())
  prepareEnvironment()
  const end = (): void => void runtime.stop().then(() => process.exit(0))
  const onFatal = (message: string): void => {
    console.error(message)
    process.exit(EXIT_CONFIG)
  }
  const runtime = new Runtime({ settings, logWriter: await createLog(settings), onFatal })
  const { bus } = runtime.host
  bus.addListener((record) => tell({ type: 'event', record }))
  bus.addFailureListener((failure) => tell({ type: 'failure', failure }))
  process.on('SIGTERM', end)
  // The test is gone, and nobody else would end this process.
  process.on('disconnect', () => process.exit(1))
  process.on('message', (question: ToChild) => {
    answer(runtime, question).then(
      (result) => tell({ type: 'answer', id: question.id, answer: result }),
      (thrown) => tell({ type: 'refusal', id: question.id, error: messageOf(thrown) }),
    )
  })
  const port = await runtime.start({ exclusivePort: true })
  const { plugins } = runtime.host.systemDump()
  tell({ type: 'serving', port, plugins, reasons: runtime.readiness().reasons })
}

async function answer(runtime: Runtime, { ask, args }: ToChild): Promise<unknown> {
  const { bus } = runtime.host
  switch (ask) {
    case 'publish': {
      // The tool and not the bus behind it: it checks what is published.
      const tool = runtime.toolbox.for({ name: 'test', instance: undefined }, 'event_bus') as EventBus
      return tool.publish(args.event, args.payload)
    }
    case 'idle':
      return pendingAfter(() => runtime.pendingDeliveries, args.timeoutMs)
    case 'deadLetters':
      return bus.deadLetters()
    case 'jobs':
      return runtime.host.jobs()
  }
}

function tell(message: FromChild): void {
  process.send?.(message)
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigFaults ? error.message : `heddle cannot start: ${messageOf(error)}`)
  process.exit(error instanceof ConfigFaults ? EXIT_CONFIG : 1)
})
