// What the process of a booted runtime runs, and the messages between it and the test.
import { basename } from 'node:path'
import type { DeliveryFailure, EventBus, EventRecord } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/events.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import { ConfigFaults, copyEnvironment, EXIT_CONFIG, loadSettings, prepareEnvironment } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { movedMs, showTime } from '../../core/schedule/moved-time.ts'
import { createLog } from '../../primary/logging/process-log.ts'
import { Runtime } from '../../primary/runtime.ts'
import { activeTools, toolNameOf } from '../../runtime/kernel/discover.ts'
import { type AdvanceOptions, add, begin, type Move, moveAll } from './clock.ts'
import { pendingAfter } from './seen-events.ts'

/** The calls that the test makes into the runtime that it has booted. */
const callsInto = (runtime: Runtime, unmovable: string | null) => ({
  // Through the tool and not the bus behind it, since the tool checks the payload.
  publish: (event: string, payload: Payload): Promise<string> =>
    (runtime.toolbox.for({ name: 'test', instance: undefined }, 'event_bus') as EventBus).publish(event, payload),
  /** Returns 0 as soon as nothing is pending, else after `timeoutMs` the number of deliveries that still are. */
  idle: (timeoutMs: number): Promise<number> => pendingAfter(() => runtime.pendingDeliveries, timeoutMs),
  deadLetters: () => runtime.host.bus.services.deadLetters(),
  jobs: () => runtime.host.services.jobs(),
  advance: (move: Move, options: Required<AdvanceOptions>): Promise<void> => {
    if (unmovable !== null) throw new Error(`clock.advance: ${unmovable}`)
    return moveAll(move, options)
  },
  /** Returns by how much the time is moved, milliseconds. */
  moved: () => movedMs(),
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
  | { type: 'serving'; port: number; plugins: Record<string, PluginHealth>; reasons: string[]; movedMs: number }
  | { type: 'event'; record: EventRecord }
  | { type: 'failure'; failure: DeliveryFailure }
  | { type: 'result'; id: number; result: unknown }
  | { type: 'error'; id: number; error: string }

/** The process that a test has booted: the runtime as `npm start` runs it, which also reports to the test what happens. */
async function main(): Promise<void> {
  const { settings } = loadSettings(copyEnvironment())
  prepareEnvironment()
  const unmovable = whyUnmovable(settings)
  const start = process.argv[2]
  if (unmovable === null) {
    begin(start === undefined ? undefined : Number(start))
    // Before the first lane starts, which has the same.
    showTime()
  } else if (start !== undefined) throw new Error(`start: ${unmovable}`)
  const end = (): void => void runtime.stop().then(() => process.exit(0))
  const onFatal = (message: string): void => {
    console.error(message)
    process.exit(EXIT_CONFIG)
  }
  const runtime = new Runtime({ settings, processLog: createLog(settings), onFatal })
  if (unmovable === null) add(runtime)
  const { bus } = runtime.host
  bus.addListener((record) => send({ type: 'event', record }))
  bus.addFailureListener((failure) => send({ type: 'failure', failure }))
  process.on('SIGTERM', end)
  // The test process is gone, and nothing else would end this one.
  process.on('disconnect', () => process.exit(1))
  const calls = callsInto(runtime, unmovable)
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
  send({ type: 'serving', port, plugins, reasons: runtime.readiness().reasons, movedMs: movedMs() })
}

/** Why the time of this process cannot be moved; null when it can. */
function whyUnmovable({ eventBusDriver, laneFreezeBuiltins, toolsDir, tools }: Settings): string | null {
  if (eventBusDriver === 'keyvalue_streams')
    return "EVENT_BUS_DRIVER=keyvalue_streams keeps events in Redis, whose clock a test cannot move. Use 'database' in this test"
  const state = activeTools(toolsDir, tools).find((folder) => toolNameOf(folder) === 'state')
  if (state !== undefined && basename(state.path) !== 'memory-state')
    return `the tool state is ${basename(state.path)}, whose times (ttlMs) go by its server's clock, which a test cannot move. Use memory-state in this test`
  if (laneFreezeBuiltins) return 'LANE_FREEZE_BUILTINS keeps Date as it is. Leave it out in this test'
  return null
}

function send(message: FromChild): void {
  process.send?.(message)
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigFaults ? error.message : `heddle cannot start: ${messageOf(error)}`)
  process.exit(error instanceof ConfigFaults ? EXIT_CONFIG : 1)
})
