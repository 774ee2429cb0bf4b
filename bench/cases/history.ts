import assert from 'node:assert/strict'
import type { BenchCase } from '../bench-case.ts'
import { compare, type Keeping, keptRow } from '../comparison.ts'
import { type BenchServer, heddleSide } from '../server.ts'
import { HELLO_LOAD, verifyHello } from './hello.ts'

const OFF = 'off'
const KEPT: Record<string, Keeping> = {
  production: { label: 'as in production: failures, the slowest, 1 %', env: {}, atLeast: 0.9 },
  all: { label: 'everything kept', env: { HISTORY_SAMPLE: '1' }, atLeast: 0.6 },
}
/** V8 compiles the thread that writes the file meanwhile. */
const WARMUP_MS = 4000

export const history: BenchCase = {
  name: 'history',
  title: 'GET /hello/:name with a history of requests, beside none',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: null }
    const rounds = await compare(context, {
      sides: Object.assign(
        heddleSide(context, OFF, 1, { HISTORY_ENABLED: 'false' }),
        ...Object.entries(KEPT).map(([side, { env }]) => heddleSide(context, side, 1, env)),
      ),
      load: HELLO_LOAD,
      warmupMs: WARMUP_MS,
      before: verifyHello,
      after: verifyKept,
    })
    const rows = Object.entries(KEPT).map(([side, kept]) => keptRow('history', kept, rounds, side, OFF, 'no history'))
    return { rows, details: { rounds } }
  },
}

/** A history in which nothing stands costs nothing. */
async function verifyKept({ name, host, port }: BenchServer): Promise<void> {
  if (name === OFF) return
  const response = await fetch(`http://${host}:${port}/system/requests?route=/hello&limit=1`)
  assert.equal(response.status, 200, name)
  assert.equal(((await response.json()) as unknown[]).length, 1, `${name}: nothing is kept`)
}
