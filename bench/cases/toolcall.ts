import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { BenchCase, Row } from '../bench-case.ts'
import type { ToolCallFigures } from '../micro/tool-call.ts'

export const toolcall: BenchCase = {
  name: 'toolcall',
  title: 'A tool call through the proxy, over the bare call',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: {} }
    const profileDir = context.profileDir('toolcall')
    const child = fork(new URL('../micro/tool-call.ts', import.meta.url), [String(context.measureMs)], {
      execArgv: [
        '--import',
        import.meta.resolve('tsx'),
        ...(profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []),
      ],
      env: { ...process.env, NODE_ENV: 'production' },
    })
    const exited = once(child, 'exit')
    const figures = await Promise.race([
      once(child, 'message').then(([message]) => message as ToolCallFigures),
      exited.then(([code]) => {
        throw new Error(`the tool-call benchmark ended with code ${code}`)
      }),
    ])
    await exited
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
    target: { of: 'figure', sense: 'at most', value: 250, unit: 'ns' },
    faults: [],
    note: `${proxiedNs.toFixed(0)} ns through the proxy`,
  }
}
