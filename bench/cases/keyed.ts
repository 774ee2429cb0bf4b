import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { postgresServer } from '../../test/support/servers/postgres.ts'
import { toolsDirWith } from '../../test/support/tools-dir.ts'
import { alone, type BenchCase, type CaseContext, figureTo, type Row } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { processCpuUs, treeCpuUs } from '../cpu.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import type measureBareLoop from '../postgres/bare-loop.ts'
import { median } from '../report.ts'
import { startHeddle } from '../server.ts'
import { lostIn, type Publisher, publishingThread, sharedRun, type TickRun } from '../ticks.ts'

const PROCESSES = ['a', 'b'] as const
const WARMUP_EVENTS = 50_000
const FORGOTTEN_DEADLINE_MS = 10_000
/** How many keys the events have, and how many events there are: one key is handled one after another. */
const KINDS = {
  'of 10,000 keys': { keys: 10_000, count: 100_000, perSec: 40_000 },
  'of 20 keys': { keys: 20, count: 30_000, perSec: null },
  'of one key': { keys: 1, count: 10_000, perSec: null },
} as const
type Kind = keyof typeof KINDS
const NAMES = Object.keys(KINDS) as Kind[]

interface Round extends TickRun {
  /** Processor time of an event in both processes, and in the server, microseconds. */
  ownUs: number
  serverUs: number
  /** Rows a second of the bare loop, right after the round. */
  bare: number
}

export const keyed: BenchCase = {
  name: 'keyed',
  title: 'Events with a key over two processes on PostgreSQL: stored, handled in order, forgotten',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: null }
    const rounds = await measure(context)
    return { rows: NAMES.map((name) => rowOf(name, rounds[name])), details: rounds }
  },
}

function rowOf(name: Kind, rounds: readonly Round[]): Row {
  const { perSec } = KINDS[name]
  const figure = (of: keyof Round): number => median(rounds.map((round) => Number(round[of])))!
  return {
    ...alone({
      label: `keyed: two processes on PostgreSQL, events ${name}`,
      unit: 'events/s',
      heddle: figure('perSec'),
      target: perSec === null ? null : figureTo('at least', perSec, 'events/s'),
      faults: lostIn(rounds),
      note: `CPU of an event ${figure('ownUs').toFixed(1)} µs, the server's ${figure('serverUs').toFixed(1)}`,
    }),
    baseline: figure('bare'),
    baselineName: 'loop of INSERT 100, DELETE 100',
    ratio: median(rounds.map((round) => round.perSec / round.bare)),
  }
}

async function measure(context: CaseContext): Promise<Record<Kind, Round[]>> {
  const owner = new Owner()
  try {
    const postgres = await postgresServer(owner, { own: true, durable: true })
    if (postgres === null) throw new Error(owner.reason)
    const { host, port, user, password, database } = postgres
    const access = { host, port, user, password, database }
    const client = new pg.Client(access)
    await client.connect()
    owner.after(() => client.end())
    const tools = { ...postgres.env, TOOLS_DIR: await toolsDirWith(owner, 'postgres') }
    const publishers: Publisher[] = []
    for (const name of PROCESSES) {
      const env = { ...tools, EVENT_BUS_DRIVER: 'database', REPLICA_ID: name }
      const server = await startHeddle({ name, lanes: 1, env, profileDir: context.profileDir(`keyed-${name}`) })
      owner.after(server.stop)
      publishers.push({ server, thread: await publishingThread(server, false) })
    }
    await untilShared(client)
    const postmaster = await postmasterPid(client)
    const run = async (name: Kind, round: string, count: number = KINDS[name].count): Promise<Omit<Round, 'bare'>> => {
      const clocks = () => [...publishers.map(({ server }) => processCpuUs(server.pid)), treeCpuUs(postmaster)]
      const before = clocks()
      const last = await lastRow(client)
      const { keys } = KINDS[name]
      const ticks = await sharedRun(publishers, { run: `${name} ${round}`, count, keys, note: STORED_NOTE })
      const forgottenMs = await untilForgotten(client, last)
      const costs = clocks().map((us, n) => (us - before[n]!) / count)
      const elapsedMs = ticks.elapsedMs + forgottenMs
      const perSec = (ticks.handled / elapsedMs) * 1000
      return { ...ticks, elapsedMs, perSec, ownUs: costs[0]! + costs[1]!, serverUs: costs[2]! }
    }
    await run(NAMES[0]!, 'warm-up', WARMUP_EVENTS)
    const rounds: Record<Kind, Round[]> = { 'of 10,000 keys': [], 'of 20 keys': [], 'of one key': [] }
    for (let round = 1; round <= context.rounds; round++) {
      for (const [n, name] of NAMES.entries()) {
        context.step(`round ${round} of ${context.rounds}, ${name}`, ((round - 1) * 3 + n) / (context.rounds * 3))
        const measured = await run(name, String(round))
        const plan = { access, measureMs: context.measureMs }
        const bare = await inChild<typeof measureBareLoop>('postgres/bare-loop.ts', plan)
        rounds[name].push({ ...measured, bare })
        const { perSec, ownUs, serverUs } = measured
        const costs = `${ownUs.toFixed(1)} µs an event, the server ${serverUs.toFixed(1)}`
        context.say(`round ${round} ${Math.round(perSec)} events/s ${name} (${costs}), bare ${Math.round(bare)}`)
      }
    }
    return rounds
  } finally {
    await owner.end()
  }
}

/** Resolves when each process has half of the slots of each group. */
async function untilShared(client: pg.Client): Promise<void> {
  const shared = `SELECT NOT EXISTS (SELECT 1 FROM heddle_slot AS s JOIN heddle_group AS g ON g.id = s.grp AND g.member = 0
    GROUP BY s.grp HAVING count(DISTINCT s.member) < ${PROCESSES.length}) AS are`
  while (!(await client.query(shared)).rows[0].are) await sleep(50)
}

async function lastRow(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0) AS seq")
  return Number(rows[0].seq)
}

/** @param after looks only at rows of the run: what vacuum has not removed yet is visited, too @returns for how long it has waited, milliseconds */
async function untilForgotten(client: pg.Client, after: number): Promise<number> {
  const startMs = performance.now()
  while ((await client.query('SELECT 1 FROM heddle_delivery WHERE seq > $1 LIMIT 1', [after])).rowCount !== 0) {
    if (performance.now() - startMs > FORGOTTEN_DEADLINE_MS) throw new Error('events are not forgotten')
    await sleep(2)
  }
  return performance.now() - startMs
}

async function postmasterPid(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid")
  return Number(rows[0].pid)
}
