import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresServer } from '../../test/support/servers/postgres.ts'
import { toolsDirWith } from '../../test/support/tools-dir.ts'
import { type BenchCase, type CaseContext, type Row, ratioTo } from '../bench-case.ts'
import { Owner } from '../child.ts'
import { residentBytes } from '../cpu.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'

/** Of the slow subscriber, at a start. */
const STORED = 1_000_000
/** Of the slow subscriber, in front of an event of the idle one. */
const BEHIND = 100_000
const PROBES = 200
/** For what has begun with the backlog to end, milliseconds. */
const SETTLE_MS = 2000
const BYTES_PER_MB = 1_000_000
const STORES = ['SQLite', 'PostgreSQL', 'in_process'] as const
type Store = (typeof STORES)[number]

/** Empties a place for events, and tells the environment of processes on it. */
type Places = Record<Store, () => Promise<Record<string, string>>>

interface Start {
  /** From the spawn to ready, and until the first event of the idle subscriber is handled, milliseconds. */
  readyMs: number
  firstMs: number
  residentMb: number
}

export const backlog: BenchCase = {
  name: 'backlog',
  title:
    'The backlog of a slow subscriber: a start with 1,000,000 stored events, and an event of an idle subscriber behind 100,000',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: null }
    const owner = new Owner()
    try {
      const places = await placesOf(owner)
      const rows: Row[] = []
      const details: unknown[] = []
      for (const store of STORES) {
        const measured = await measureBehind(context, store, places[store])
        rows.push(measured.row)
        details.push(measured.details)
      }
      for (const store of STORES) {
        // Nothing outlives the process.
        if (store === 'in_process') continue
        const measured = await measureStarts(context, store, places[store])
        rows.push(...measured.rows)
        details.push(measured.details)
      }
      return { rows, details }
    } finally {
      await owner.end()
    }
  },
}

async function placesOf(owner: Owner): Promise<Places> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-backlog-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const postgres = await postgresServer(owner, { own: true, durable: true })
  if (postgres === null) throw new Error(owner.reason)
  const tools = { ...postgres.env, TOOLS_DIR: await toolsDirWith(owner, 'postgres') }
  let files = 0
  const stored = { EVENT_BUS_DRIVER: 'database', EVENT_BUS_MAX_STORED: String(10 * STORED) }
  return {
    SQLite: async () => ({ ...stored, SQLITE_PATH: join(folder, `${++files}.db`) }),
    PostgreSQL: async () => ({ ...stored, ...tools, RDB_DATABASE: await postgres.createDatabase() }),
    in_process: async () => ({ EVENT_BUS_DRIVER: 'in_process' }),
  }
}

const startOn = (env: Record<string, string>): Promise<BenchServer> =>
  startHeddle({ lanes: 1, domains: ['domains', 'bench/backlog'], env })

async function fill(server: BenchServer, count: number): Promise<number> {
  const order = { count, note: STORED_NOTE }
  return (await askJson<{ data: { accepted: number } }>(server, '/backlog/fill', { post: order })).data.accepted
}

/** @returns how long events of the idle subscriber take until they are handled, milliseconds */
async function probe(server: BenchServer, count: number): Promise<number[]> {
  return (await askJson<{ data: { tookMs: number[] } }>(server, '/backlog/probe', { post: { count } })).data.tookMs
}

async function measureBehind({ rounds, say, step }: CaseContext, store: Store, place: Places[Store]) {
  const measured: { aloneMs: number; behindMs: number; behind: number; perSec: number }[] = []
  for (let round = 1; round <= rounds; round++) {
    step(`round ${round} of ${rounds}, behind a slow subscriber, ${store}`)
    const server = await startOn(await place())
    try {
      await probe(server, PROBES)
      const aloneMs = median(await probe(server, PROBES))!
      const startMs = performance.now()
      const behind = await fill(server, BEHIND)
      const perSec = (behind / (performance.now() - startMs)) * 1000
      await sleep(SETTLE_MS)
      const behindMs = median(await probe(server, PROBES))!
      say(`round ${round} ${store}: ${aloneMs.toFixed(2)} ms, behind ${behind} ${behindMs.toFixed(2)} ms`)
      measured.push({ aloneMs, behindMs, behind, perSec })
    } finally {
      await server.stop()
    }
  }
  const behind = median(measured.map((round) => round.behind))!
  const row: Row = {
    label: `backlog: an event of an idle subscriber behind ${behind.toLocaleString('en')} of a slow one, ${store}`,
    unit: 'ms',
    heddle: median(measured.map(({ behindMs }) => behindMs)),
    baseline: median(measured.map(({ aloneMs }) => aloneMs)),
    baselineName: 'nothing else stored',
    ratio: median(measured.map(({ aloneMs, behindMs }) => behindMs / aloneMs)),
    target: ratioTo('at most', 1.2),
    faults: [],
  }
  return { row, details: { store, measured } }
}

async function measureStarts({ rounds, say, step }: CaseContext, store: Store, place: Places[Store]) {
  const sides = { without: await place(), with: await place() }
  for (const [side, env] of Object.entries(sides)) {
    step(`${STORED.toLocaleString('en')} events are stored, ${store}`)
    const server = await startOn(env)
    const stored = side === 'with' ? await fill(server, STORED) : 0
    await server.stop()
    if (side === 'with' && stored !== STORED) throw new Error(`${store} has taken ${stored} of ${STORED} events`)
  }
  const measured: { without: Start; with: Start }[] = []
  for (let round = 1; round <= rounds; round++) {
    step(`round ${round} of ${rounds}, starts, ${store}`)
    const starts = { without: await startedOn(sides.without), with: await startedOn(sides.with) }
    const told = ({ readyMs, firstMs, residentMb }: Start) =>
      `ready ${readyMs.toFixed(0)} ms, first event ${firstMs.toFixed(0)} ms, ${residentMb.toFixed(0)} MB`
    say(`round ${round} ${store}: without ${told(starts.without)}; with ${told(starts.with)}`)
    measured.push(starts)
  }
  const row = (label: string, unit: string, of: keyof Start, target: Row['target']): Row => ({
    label: `backlog: start with ${STORED.toLocaleString('en')} stored events, ${label}, ${store}`,
    unit,
    heddle: median(measured.map((start) => start.with[of])),
    baseline: median(measured.map((start) => start.without[of])),
    baselineName: 'none stored',
    ratio: median(measured.map((start) => start.with[of] / start.without[of])),
    target,
    faults: [],
  })
  const rows = [
    row('ready', 'ms', 'readyMs', ratioTo('at most', 1.1)),
    row('first event of an idle subscriber handled', 'ms', 'firstMs', ratioTo('at most', 1.1)),
    row('resident', 'MB', 'residentMb', null),
  ]
  return { rows, details: { store, measured } }
}

async function startedOn(env: Record<string, string>): Promise<Start> {
  const server = await startOn(env)
  try {
    const startMs = performance.now()
    await probe(server, 1)
    const firstMs = server.bootMs + performance.now() - startMs
    await sleep(SETTLE_MS)
    return { readyMs: server.bootMs, firstMs, residentMb: residentBytes(server.pid) / BYTES_PER_MB }
  } finally {
    await server.stop()
  }
}
