// The same tool bare and through the proxy.
import { inWindows, type Loop, type WindowPlan, type WindowSide } from '../windows.ts'
import { proxied } from './proxied-tool.ts'

/** Calls between two looks at the clock. */
const CALLS = 1000

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

/** Nanoseconds of CPU that a call takes: of time others take a part. */
export default async function measureToolCalls(plan: WindowPlan) {
  const bare = new NoteTool()
  const tool = proxied('note', new NoteTool())
  /** Sent together with the figures, so that V8 cannot remove the calls. */
  let sum = 0

  const sync =
    (target: Pick<NoteTool, 'read'>): Loop =>
    (endMs) => {
      let count = 0
      for (; performance.now() < endMs; count += CALLS) {
        for (let i = 0; i < CALLS; i++) sum += target.read('a')
      }
      return count
    }
  const async =
    (target: Pick<NoteTool, 'readLater'>): Loop =>
    async (endMs) => {
      let count = 0
      for (; performance.now() < endMs; count += CALLS) {
        for (let i = 0; i < CALLS; i++) sum += await target.readLater('a')
      }
      return count
    }
  const sides = await inWindows(
    { sync: sync(bare), syncProxied: sync(tool), async: async(bare), asyncProxied: async(tool) },
    plan,
  )
  const nanoseconds = ({ cpuUs }: WindowSide): number => cpuUs * 1000
  return {
    sync: { bareNs: nanoseconds(sides.sync), proxiedNs: nanoseconds(sides.syncProxied) },
    async: { bareNs: nanoseconds(sides.async), proxiedNs: nanoseconds(sides.asyncProxied) },
    sum,
  }
}
