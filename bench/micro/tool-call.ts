// A separate process: measures the same tool bare and through the proxy, prints nothing, and sends its figures over IPC.
import { Bench } from 'tinybench'
import { planOf, sendFigures } from '../child.ts'
import { proxied } from './proxied-tool.ts'

/** Calls per sample, because one call is shorter than the resolution of the clock. */
const CALLS = 1000

export interface ToolCallPlan {
  measureMs: number
}

export interface ToolCallFigures {
  sync: { bareNs: number; proxiedNs: number }
  async: { bareNs: number; proxiedNs: number }
}

/** A tool that does almost nothing, so that only the call is measured. */
class NoteTool {
  readonly name = 'note'
  #notes = new Map([['a', 1]])

  read(key: string): number {
    return this.#notes.get(key) ?? 0
  }

  async readLater(key: string): Promise<number> {
    return this.#notes.get(key) ?? 0
  }
}

const timeMs = planOf<ToolCallPlan>().measureMs / 4
const bare = new NoteTool()
const tool = proxied('note', new NoteTool())
/** Sent together with the figures, so that V8 cannot remove the calls. */
let sum = 0

function callSync(target: Pick<NoteTool, 'read'>): void {
  for (let i = 0; i < CALLS; i++) sum += target.read('a')
}
async function callAsync(target: Pick<NoteTool, 'readLater'>): Promise<void> {
  for (let i = 0; i < CALLS; i++) sum += await target.readLater('a')
}

const bench = new Bench({ time: timeMs, warmup: true, warmupTime: 500 })
bench
  .add('sync bare', () => callSync(bare))
  .add('sync proxied', () => callSync(tool))
  .add('async bare', () => callAsync(bare))
  .add('async proxied', () => callAsync(tool))
await bench.run()

function nanoseconds(task: string): number {
  const result = bench.getTask(task)?.result
  if (result?.state !== 'completed') throw new Error(`${task}: ${JSON.stringify(result)}`)
  return (result.latency.p50 * 1e6) / CALLS
}

const figures: ToolCallFigures & { sum: number } = {
  sync: { bareNs: nanoseconds('sync bare'), proxiedNs: nanoseconds('sync proxied') },
  async: { bareNs: nanoseconds('async bare'), proxiedNs: nanoseconds('async proxied') },
  sum,
}
sendFigures(figures)
