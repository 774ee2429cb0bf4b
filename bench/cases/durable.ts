import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { postgresServer } from '../../test/support/servers/postgres.ts'
import { toolsDirWith } from '../../test/support/tools-dir.ts'
import { alone, type BenchCase, type CaseContext, figureTo, type Row, ratioTo } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { compare, compared, figures, perSec } from '../comparison.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import type measureQueues from '../postgres/queues.ts'
import { median } from '../report.ts'
import { type BenchServer, heddleSide, serverSide, startHeddle } from '../server.ts'
import type measureLoops from '../sqlite/log-loops.ts'
import { lostIn, publishingThread, type TickOrder, type TickRun, tickRun } from '../ticks.ts'
import { itemsTo, verifyEvents } from './write.ts'

const EVENTS = 100_000
/** Events a second of a machine's two cores, with full sync. */
const PER_SEC = 80_000
const WARMUP_EVENTS = 50_000
const FORGOTTEN_DEADLINE_MS = 10_000
const POSTGRES_EVENTS = 50_000
/** Jobs of each queue that is compared. */
const JOBS = 2000

export const durable: BenchCase = {
  name: 'durable',
  title:
    'Events that outlive the process, on SQLite and PostgreSQL: stored, handled, forgotten; and a POST whose row and event are one transaction',
  async run(context) {
    const rows: Row[] = []
    const details: unknown[] = []
    for (const synchronous of ['full', 'normal'] as const) {
      const measured = await measureLog(context, synchronous)
      rows.push(...measured.rows)
      details.push(measured.details)
    }
    const posts = await measurePosts(context)
    const postgres = await measurePostgres(context)
    return { rows: [...rows, ...posts.rows, ...postgres.rows], details: [...details, posts.details, postgres.details] }
  },
}

/** A run of the runtime, and the rates of loops of the driver beside it. */
interface Round {
  heddle: TickRun | null
  loops: Record<string, number>
}

/** @param run of the runtime; null: the loops alone @param loops in a process of their own */
async function besideLoops(
  context: CaseContext,
  what: string,
  run: ((name: string) => Promise<TickRun>) | null,
  loops: () => Promise<Round['loops']>,
): Promise<Round[]> {
  const measured: Round[] = []
  await run?.('warm-up')
  for (let round = 1; round <= context.rounds; round++) {
    context.step(`round ${round} of ${context.rounds}, ${what}`)
    const heddle = run === null ? null : await run(`round-${round}`)
    const rates = await loops()
    const told = Object.entries(rates).map(([name, rate]) => `${name} ${Math.round(rate)}`)
    context.say(
      `round ${round} ${heddle === null ? '–' : Math.round(heddle.perSec)} events/s beside ${told.join(', ')} a second`,
    )
    measured.push({ heddle, loops: rates })
  }
  return measured
}

function rowOf(label: string, measured: readonly Round[], of: string, baselineName: string, value: number): Row {
  const runs = measured.flatMap(({ heddle }) => heddle ?? [])
  const rates = { heddle: runs.map(({ perSec: rate }) => rate), bare: measured.map(({ loops }) => loops[of]!) }
  return {
    label: `durable: stored, handled in another lane, forgotten, ${label}`,
    unit: 'events/s',
    ...figures(rates, (rate) => rate, 'heddle', 'bare', baselineName),
    target: ratioTo('at least', value),
    faults: lostIn(runs),
  }
}

/** The runtime with two lanes, and that of its threads which publishes; null when only baselines are wanted. */
async function startPublisher(context: CaseContext, owner: Owner, name: string, env: Record<string, string>) {
  if (context.baselinesOnly) return null
  const profileDir = context.profileDir(`durable-${name}`)
  const server = await startHeddle({ lanes: 2, env: { ...env, EVENT_BUS_DRIVER: 'database' }, profileDir })
  owner.after(server.stop)
  return { server, thread: await publishingThread(server) }
}

async function measureLog(context: CaseContext, synchronous: 'full' | 'normal') {
  const { measureMs } = context
  const owner = new Owner()
  try {
    const heddle = await startPublisher(context, owner, synchronous, { SQLITE_SYNCHRONOUS: synchronous })
    const run =
      heddle &&
      ((name: string) =>
        forgottenRun(heddle.server, {
          run: name,
          thread: heddle.thread,
          count: name === 'warm-up' ? WARMUP_EVENTS : EVENTS,
        }))
    const loops = () => inChild<typeof measureLoops>('sqlite/log-loops.ts', { synchronous, measureMs })
    const measured = await besideLoops(context, synchronous, run, loops)
    const where = `synchronous=${synchronous}`
    const bare = rowOf(where, measured, 'bare', 'loop of 20 inserts a commit', 0.35)
    const poll = rowOf(where, measured, 'poll', 'polled table, one at a time', 5)
    const { label, unit, heddle: rate, faults } = bare
    const figure = alone({ label, unit, heddle: rate, faults, target: figureTo('at least', PER_SEC, 'events/s') })
    return { rows: [...(synchronous === 'full' ? [figure] : []), bare, poll], details: measured }
  } finally {
    await owner.end()
  }
}

/** A run on SQLite. */
async function forgottenRun(server: BenchServer, order: TickOrder): Promise<TickRun> {
  const database = new Database(join(server.directory, 'bench.db'), { readonly: true })
  const left = database.prepare('SELECT count(*) FROM heddle_delivery').pluck()
  try {
    return await untilForgotten(server, order, async () => Number(left.get()))
  } finally {
    database.close()
  }
}

/** A run whose time is up when the log is empty again. @param left how many events are in the log */
async function untilForgotten(server: BenchServer, order: TickOrder, left: () => Promise<number>): Promise<TickRun> {
  const ticks = await tickRun(server, { ...order, note: STORED_NOTE })
  const handledAtMs = performance.now()
  while ((await left()) !== 0) {
    if (performance.now() - handledAtMs > FORGOTTEN_DEADLINE_MS) throw new Error('events are not forgotten')
    await sleep(2)
  }
  const elapsedMs = ticks.elapsedMs + performance.now() - handledAtMs
  return { ...ticks, elapsedMs, perSec: (ticks.handled / elapsedMs) * 1000 }
}

async function measurePosts(context: CaseContext) {
  const rounds = await compare(context, {
    sides: {
      ...heddleSide(context, 'heddle', 1, { EVENT_BUS_DRIVER: 'database' }),
      ...serverSide(context, 'fastify', 'bench/baselines/shared-thread-fastify.ts'),
      ...heddleSide(context, 'in_process', 1, { EVENT_BUS_DRIVER: 'in_process' }),
    },
    load: (side) => itemsTo(side === 'in_process' ? '/bench/items' : '/bench/stored-items'),
    after: verifyEvents,
  })
  const row = (baseline: string, baselineName: string, value: number): Row => ({
    label: 'durable: POST, row and event in one transaction',
    unit: 'requests/s',
    ...compared(rounds, perSec, 'heddle', baseline, baselineName),
    target: ratioTo('at least', value),
  })
  return {
    rows: [
      row('in_process', 'row, then event on the in-process bus', 0.85),
      row('fastify', 'Fastify + better-sqlite3, row and outbox row', 1.3),
    ],
    details: rounds,
  }
}

async function measurePostgres(context: CaseContext) {
  const owner = new Owner()
  try {
    const postgres = await postgresServer(owner, { own: true, durable: true })
    if (postgres === null) throw new Error(owner.reason)
    const { host, port, user, password, database } = postgres
    const access = { host, port, user, password, database }
    const client = new pg.Client(access)
    await client.connect()
    owner.after(() => client.end())
    let published = 0
    // Only what the run has published, by position: a count of all would visit what vacuum could not remove.
    const left = async (): Promise<number> => {
      const { rows } = await client.query('SELECT count(*) AS n FROM heddle_delivery WHERE seq > $1', [published])
      return Number(rows[0].n)
    }
    const tools = { ...postgres.env, TOOLS_DIR: await toolsDirWith(owner, 'postgres') }
    const heddle = await startPublisher(context, owner, 'postgres', tools)
    const run =
      heddle &&
      (async (name: string): Promise<TickRun> => {
        const order = { run: name, thread: heddle.thread, count: POSTGRES_EVENTS }
        const measured = await untilForgotten(heddle.server, order, left)
        published += measured.published
        return measured
      })
    const plan = { access, measureMs: context.measureMs, jobs: JOBS }
    const loops = () => inChild<typeof measureQueues>('postgres/queues.ts', plan)
    const measured = await besideLoops(context, 'PostgreSQL', run, loops)
    const free = median(measured.flatMap((round) => round.heddle?.perSec ?? []))
    const held = run === null ? [] : await heldRuns(context, access, run)
    const heldRate = median(held)
    const heldRow: Row = {
      label: 'durable: the same on PostgreSQL, a transaction held open for the whole run',
      unit: 'events/s',
      heddle: heldRate,
      baseline: free,
      baselineName: 'heddle without it',
      ratio: heldRate === null || free === null ? null : heldRate / free,
      target: ratioTo('at least', 0.9),
      faults: [],
    }
    const rows = [
      heldRow,
      rowOf('on PostgreSQL', measured, 'bare', 'loop of INSERT 100, DELETE 100', 0.6),
      rowOf('on PostgreSQL', measured, 'graphileWorker', 'graphile-worker, one job at a time', 2),
      rowOf('on PostgreSQL', measured, 'pgBoss', 'pg-boss, one job at a time', 2),
    ]
    return { rows, details: [...measured, { held }] }
  } finally {
    await owner.end()
  }
}

/** Runs while a transaction sees all that is deleted meanwhile, which vacuum may not remove. @returns events/s of each */
async function heldRuns(
  context: CaseContext,
  access: pg.ClientConfig,
  run: (name: string) => Promise<TickRun>,
): Promise<number[]> {
  const holder = new pg.Client(access)
  await holder.connect()
  try {
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await holder.query('SELECT pg_current_xact_id(), count(*) FROM heddle_delivery')
    const held: number[] = []
    for (let round = 1; round <= context.rounds; round++) {
      const { perSec: rate } = await run(`held-${round}`)
      context.say(`round ${round} ${Math.round(rate)} events/s beside an open transaction`)
      held.push(rate)
    }
    return held
  } finally {
    await holder.end()
  }
}
