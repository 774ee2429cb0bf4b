import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { BenchCase, CaseContext, Row } from '../bench-case.ts'
import { busyNote, compare, faultsOf, medianOf, medianRatio, perSec } from '../comparison.ts'
import { postRequest } from '../load/http-request.ts'
import { type BenchServer, heddleSide, serverSide, startHeddle } from '../server.ts'
import { type LoopFigures, measureLoops } from '../sqlite/log-loops.ts'
import { median } from '../statistics.ts'
import { publishingThread, type TickRun, tickRun } from './events.ts'
import { verifyEvents } from './write.ts'

const EVENTS = 100_000
const WARMUP_EVENTS = 50_000
const BODIES = 32
const CONNECTIONS = 64
const FORGOTTEN_DEADLINE_MS = 10_000

export const durable: BenchCase = {
  name: 'durable',
  title:
    'Events that outlive the process, on SQLite: stored, handled, forgotten; and a POST whose row and event are one transaction',
  async run(context) {
    const rows: Row[] = []
    const details: unknown[] = []
    for (const synchronous of ['full', 'normal'] as const) {
      const measured = await measureLog(context, synchronous)
      rows.push(...measured.rows)
      details.push(measured.details)
    }
    const posts = await measurePosts(context)
    return { rows: [...rows, ...posts.rows], details: [...details, posts.details] }
  },
}

interface LogRound {
  heddle: TickRun | null
  loops: LoopFigures
}

async function measureLog(context: CaseContext, synchronous: 'full' | 'normal') {
  const { rounds, measureMs, baselinesOnly } = context
  const server = baselinesOnly
    ? null
    : await startHeddle({
        lanes: 2,
        env: { EVENT_BUS_DRIVER: 'database', SQLITE_SYNCHRONOUS: synchronous },
        profileDir: context.profileDir(`durable-${synchronous}`),
      })
  const measured: LogRound[] = []
  try {
    const thread = server === null ? 0 : await publishingThread(server)
    if (server !== null) await forgottenRun(server, 'warm-up', thread, WARMUP_EVENTS)
    for (let round = 1; round <= rounds; round++) {
      context.step(`round ${round} of ${rounds}, ${synchronous}`)
      const heddle = server === null ? null : await forgottenRun(server, `round-${round}`, thread, EVENTS)
      const loops = await measureLoops({ synchronous, measureMs })
      const told = heddle === null ? '–' : String(Math.round(heddle.perSec))
      context.say(
        `round ${round} ${told} events/s, bare loop ${Math.round(loops.bare)}, poll ${Math.round(loops.poll)}`,
      )
      measured.push({ heddle, loops })
    }
  } finally {
    await server?.stop()
  }
  const row = (of: keyof LoopFigures, baselineName: string, value: number): Row => ({
    label: `durable: stored, handled in another lane, forgotten, synchronous=${synchronous}`,
    unit: 'events/s',
    heddle: median(measured.flatMap(({ heddle }) => heddle?.perSec ?? [])),
    baseline: median(measured.map(({ loops }) => loops[of])),
    baselineName,
    ratio: median(measured.flatMap(({ heddle, loops }) => (heddle === null ? [] : heddle.perSec / loops[of]))),
    target: { of: 'ratio', sense: 'at least', value, unit: '×' },
    faults: measured
      .filter(({ heddle }) => heddle !== null && heddle.handled !== heddle.published)
      .map(({ heddle }) => `${heddle!.handled} handled of ${heddle!.published} published`),
  })
  return {
    rows: [row('bare', 'loop of 20 inserts a commit', 0.35), row('poll', 'polled table, one at a time', 5)],
    details: measured,
  }
}

/** A run whose time is up when the log is empty again. */
async function forgottenRun(server: BenchServer, run: string, thread: number, count: number): Promise<TickRun> {
  const ticks = await tickRun(server, run, thread, count)
  const handledAtMs = performance.now()
  const database = new Database(join(server.directory, 'bench.db'), { readonly: true })
  const left = database.prepare('SELECT count(*) FROM heddle_event').pluck()
  while (left.get() !== 0) {
    if (performance.now() - handledAtMs > FORGOTTEN_DEADLINE_MS)
      throw new Error(`${left.get()} events are not forgotten`)
    await sleep(2)
  }
  database.close()
  const elapsedMs = ticks.elapsedMs + performance.now() - handledAtMs
  return { ...ticks, elapsedMs, perSec: (ticks.handled / elapsedMs) * 1000 }
}

async function measurePosts(context: CaseContext) {
  const body = (index: number) => ({ name: `item ${index}`, quantity: index + 1, note: 'a note of usual length' })
  const requestsTo = (path: string) => Array.from({ length: BODIES }, (_, index) => postRequest(path, body(index)))
  const rounds = await compare(context, {
    sides: {
      ...heddleSide(context, 'heddle', 1, { EVENT_BUS_DRIVER: 'database' }),
      ...serverSide(context, 'fastify', 'bench/baselines/write-fastify.ts'),
      ...heddleSide(context, 'in_process', 1, { EVENT_BUS_DRIVER: 'in_process' }),
    },
    load: (side) => ({
      requests: requestsTo(side === 'in_process' ? '/bench/items' : '/bench/stored-items'),
      connections: CONNECTIONS,
    }),
    after: verifyEvents,
  })
  const row = (baseline: string, baselineName: string, value: number): Row => ({
    label: 'durable: POST, row and event in one transaction',
    unit: 'requests/s',
    heddle: medianOf(rounds, 'heddle', perSec),
    baseline: medianOf(rounds, baseline, perSec),
    baselineName,
    ratio: medianRatio(rounds, 'heddle', baseline, perSec),
    target: { of: 'ratio', sense: 'at least', value, unit: '×' },
    faults: faultsOf(rounds, 'heddle', baseline),
    ...busyNote(rounds),
  })
  return {
    rows: [
      row('in_process', 'row, then event on the in-process bus', 0.85),
      row('fastify', 'Fastify + better-sqlite3, row and outbox row', 1.3),
    ],
    details: rounds,
  }
}
