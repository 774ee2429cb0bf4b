import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type BenchCase, type CaseContext, figureTo, noteOf } from '../bench-case.ts'
import { busyNote, inTurn, outcomesOf } from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import type { RateStream, StreamResult } from '../load/plan.ts'
import { askJson, type BenchServer, heddleSide } from '../server.ts'
import { itemTo } from './write.ts'

const LANES = 2
const WARMUP_MS = 2000
const WINDOW_MS = 12_000
const DRAIN_MS = 3000
/** Milliseconds from the end of one reload to the next. */
const PAUSE_MS = 500

/** 5,000 requests a second. */
export const STREAMS: readonly RateStream[] = [
  { name: 'GET /hello/:name', requests: [getRequest('/hello/ada')], perSec: 4700, connections: 512 },
  { name: 'POST /bench/items', requests: [itemTo('/bench/items')], perSec: 300, connections: 128 },
]

export const reload: BenchCase = {
  name: 'reload',
  title: 'Failed requests while SIGHUP replaces all lanes again and again, at 5,000 requests a second',
  async run(context) {
    const sides = heddleSide(context, 'heddle', LANES)
    const { heddle: [seen] = [] } = await inTurn(context, sides, (server) => measure(context, server), { rounds: 1 })
    if (seen === undefined) return { rows: [], details: {} }
    const { result, reloads, faults } = seen
    const { streams } = result
    const failed = streams.reduce((sum, { offered, ok }) => sum + offered - ok, 0)
    context.say(`${reloads} reloads; ${streams.map(describe).join('; ')}`)
    const offered = streams.reduce((sum, stream) => sum + stream.offered, 0)
    return {
      rows: [
        alone({
          label: 'requests that fail while SIGHUP replaces all lanes again and again, at 5,000 a second',
          unit: '',
          heddle: failed,
          target: figureTo('at most', 0, ''),
          faults,
          ...noteOf(
            `${offered} requests, ${reloads} reloads`,
            ...streams.map(describe),
            busyNote({ heddle: [result] }),
          ),
        }),
      ],
      details: result,
    }
  },
}

async function measure(context: CaseContext, server: BenchServer) {
  await askJson(server, '/hello/ada')
  const loaded = context.load.offer({
    ...server.target,
    streams: [...STREAMS],
    warmupMs: WARMUP_MS,
    measureMs: WINDOW_MS,
    drainMs: DRAIN_MS,
  })
  await sleep(WARMUP_MS)
  const faults: string[] = []
  let reloads = 0
  for (const endMs = Date.now() + WINDOW_MS - PAUSE_MS; Date.now() < endMs; ) {
    const { ok, error } = await reloadOnce(server)
    if (ok) reloads++
    else faults.push(`a reload was refused: ${error}`)
    await sleep(PAUSE_MS)
  }
  if (reloads === 0) faults.push('no reload ended within the window')
  return { result: await loaded, reloads, faults }
}

/** Resolves when the process reports the result of the reload. */
async function reloadOnce(server: BenchServer): Promise<{ ok: boolean; error: string | null }> {
  const last = async () => ((await askJson(server, '/system/status')) as Status).reload
  const before = (await last())?.at
  process.kill(server.pid, 'SIGHUP')
  for (;;) {
    await sleep(20)
    const now = await last()
    if (now !== undefined && now.at !== before) return now
  }
}

interface Status {
  reload?: { at: string; ok: boolean; error: string | null }
}

const describe = (stream: StreamResult): string =>
  `${outcomesOf(stream)} p99 ${stream.okMs.p99} max ${stream.okMs.max} ms`
