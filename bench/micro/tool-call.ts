// The same tool bare and through the proxy.
import type { WindowPlan } from '../windows.ts'
import { proxied } from './proxied-tool.ts'
import { nanosecondsOf, repeated, repeatedLater } from './tasks.ts'

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

/** Measures the processor time of a call, nanoseconds. */
export default async function measureToolCalls(plan: WindowPlan) {
  const bare = new NoteTool()
  const tool = proxied('note', new NoteTool())
  /** Sent together with the figures, so that V8 cannot remove the calls. */
  let sum = 0
  const sync = (target: Pick<NoteTool, 'read'>) =>
    repeated(() => {
      sum += target.read('a')
    })
  const async = (target: Pick<NoteTool, 'readLater'>) =>
    repeatedLater(async () => {
      sum += await target.readLater('a')
    })
  const tasks = { sync: sync(bare), syncProxied: sync(tool), async: async(bare), asyncProxied: async(tool) }
  const ns = await nanosecondsOf(tasks, plan)
  return {
    sync: { bareNs: ns.sync, proxiedNs: ns.syncProxied },
    async: { bareNs: ns.async, proxiedNs: ns.asyncProxied },
    sum,
  }
}
