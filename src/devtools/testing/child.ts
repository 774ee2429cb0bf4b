// What the process of a booted runtime runs, and the messages between it and the test.
import type { DeliveryFailure, EventBus, EventRecord } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/events.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import { ConfigFaults, copyEnvironment, EXIT_CONFIG, loadSettings, prepareEnvironment } from '../../core/config/load.ts'
import { messageOf } from '../../core/errors/description.ts'
import { createLog } from '../../primary/logging/process-log.ts'
import { Runtime } from '../../primary/runtime.ts'
import { pendingAfter } from './seen-events.ts'

/** The calls that the test makes into the runtime that it has booted. */
const callsInto = (runtime: Runtime) => ({
  // Through the tool and not the bus behind it, since the tool checks the payload.
  publish: (event: string, payload: Payload): Promise<string> =>
    (runtime.toolbox.for({ name: 'test', instance: undefined }, 'event_bus') as EventBus).publish(event, payload),
  /** Returns 0 as soon as nothing is pending, else after `timeoutMs` the number of deliveries that still are. */
  idle: (timeoutMs: number): Promise<number> => pendingAfter(() => runtime.pendingDeliveries, timeoutMs),
  deadLetters: () => runtime.host.bus.services.deadLetters(),
  jobs: () => runtime.host.services.jobs(),
})

export type ChildCalls = ReturnType<typeof callsInto>

export interface ToChild {
  id: number
  call: keyof ChildCalls
  args: unknown[]
}

/** Sent in the order of what happens: a result comes after the events that came before it. */
export type FromChild =
  /** Sent once, when the runtime serves. */
  | { type: 'serving'; port: number; plugins: Record<string, PluginHealth>; reasons: string[] }
  | { type: 'event'; record: EventRecord }
  | { type: 'failure'; failure: DeliveryFailure }
  | { type: 'result'; id: number; result: unknown }
  | { type: 'error'; id: number; error: string }

/** The process that a test has booted: the runtime as `npm start` runs it, which also reports to the test what happens. */
async function main(): Promise<void> {
  const { settings } = loadSettings(copyEnvironment())
  prepareEnvironment()
  const end = (): void => void runtime.stop().then(() => process.exit(0))
  const onFatal = (message: string): void => {
    console.error(message)
    process.exit(EXIT_CONFIG)
  }
  const runtime = new Runtime({ settings, processLog: createLog(settings), onFatal })
  const { bus } = runtime.host
  bus.addListener((record) => send({ type: 'event', record }))
  bus.addFailureListener((failure) => send({ type: 'failure', failure }))
  process.on('SIGTERM', end)
  // The test process is gone, and nothing else would end this one.
  process.on('disconnect', () => process.exit(1))
  const calls = callsInto(runtime)
  process.on('message', async ({ id, call, args }: ToChild) => {
    try {
      send({ type: 'result', id, result: await (calls[call] as (...given: unknown[]) => unknown)(...args) })
    } catch (thrown) {
      send({ type: 'error', id, error: messageOf(thrown) })
    }
  })
  const port = await runtime.start({ exclusivePort: true })
  await runtime.allBooted()
  const { plugins } = runtime.host.systemDump()
  send({ type: 'serving', port, plugins, reasons: runtime.readiness().reasons })
}

function send(message: FromChild): void {
  process.send?.(message)
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigFaults ? error.message : `heddle cannot start: ${messageOf(error)}`)
  process.exit(error instanceof ConfigFaults ? EXIT_CONFIG : 1)
})
