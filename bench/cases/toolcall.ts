import { type BenchCase, figureTo, type Row } from '../bench-case.ts'
import { inChild } from '../child.ts'
import type measureToolCalls from '../micro/tool-call.ts'

export const toolcall: BenchCase = {
  name: 'toolcall',
  title: 'A tool call through the proxy, over the bare call',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: {} }
    const { measureMs, rounds, profileDir } = context
    const plan = { measureMs, rounds }
    const figures = await inChild<typeof measureToolCalls>('micro/tool-call.ts', plan, profileDir('toolcall'))
    return { rows: [row('synchronous', figures.sync), row('asynchronous', figures.async)], details: figures }
  },
}

function row(kind: string, { bareNs, proxiedNs }: { bareNs: number; proxiedNs: number }): Row {
  return {
    label: `toolcall: ${kind} call, added by the proxy`,
    unit: 'ns',
    heddle: proxiedNs - bareNs,
    baseline: bareNs,
    baselineName: 'bare call',
    ratio: null,
    target: figureTo('at most', 250, 'ns'),
    faults: [],
    note: `${proxiedNs.toFixed(0)} ns through the proxy`,
  }
}
