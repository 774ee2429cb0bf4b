// CPU of a stored event: plain, and with a limit, turns and a priority.
import { join } from 'node:path'
import pg from 'pg'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { type CaseContext, type CaseResult, type Row, ratioTo } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { treeCpuUs } from '../cpu.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import type { JobCost, MeasureCosts } from '../peers/bullmq/plan.ts'
import type { MeasureJobs } from '../postgres/job-costs.ts'
import { median } from '../report.ts'
import { ask, STORES, type Stage, type Store, startOn, until } from './stage.ts'

const EVENTS = 30_000
const WARMUP_EVENTS = 10_000
/** Jobs of each queue that is compared. */
const JOBS = 2000
const MOST = 1.3
/** Events that may wait for their handlers when 500 more are published: some, or as many as the publisher is faster. */
const AHEAD = { some: 500, all: EVENTS } as const

interface Cost {
  plain: JobCost
  used: JobCost
}

interface OwnCost extends Cost {
  /** The same two, when the publisher does not wait for the handlers. */
  all?: Cost
}

const PEERS = {
  bullmq: { title: 'BullMQ: limiter and priority', store: 'SQLite' },
  graphileWorker: { title: 'graphile-worker: priority and queue_name', store: 'PostgreSQL' },
  pgBoss: { title: 'pg-boss: priority and singletonKey', store: 'PostgreSQL' },
} as const
type Peer = keyof typeof PEERS
type Side = Store | Peer

export async function measureCosts(context: CaseContext, stage: Stage): Promise<CaseResult> {
  const owner = new Owner()
  try {
    const measured = await measure(context, owner, stage)
    return { rows: rowsOf(measured), details: { costs: measured } }
  } finally {
    await owner.end()
  }
}

async function measure(context: CaseContext, owner: Owner, stage: Stage): Promise<Partial<Record<Side, OwnCost[]>>> {
  const sides: Partial<Record<Side, () => Promise<OwnCost>>> = {}
  if (!context.baselinesOnly) for (const store of STORES) sides[store] = await heddleOn(store, context, owner, stage)
  const { redis, postmaster } = stage
  sides.bullmq = () => inChild<MeasureCosts>('peers/bullmq/costs.mjs', { access: redis, jobs: JOBS })
  for (const [peer, path] of [
    ['graphileWorker', 'postgres/graphile-costs.ts'],
    ['pgBoss', 'postgres/boss-costs.ts'],
  ] as const)
    sides[peer] = async () => {
      const access = await stage.database()
      return inChild<MeasureJobs>(path, { access, postmaster, jobs: JOBS })
    }
  const measured: Partial<Record<Side, OwnCost[]>> = {}
  for (let round = 1; round <= context.rounds; round++) {
    for (const [side, run] of Object.entries(sides) as [Side, () => Promise<OwnCost>][]) {
      context.step(`round ${round} of ${context.rounds}, CPU of an event, ${side}`)
      const cost = await run()
      const told = ({ ownUs, serverUs }: JobCost) => `${ownUs.toFixed(1)} + ${serverUs.toFixed(1)}`
      const ahead = cost.all === undefined ? '' : `; many ahead ${told(cost.all.plain)}, ${told(cost.all.used)} µs`
      context.say(`round ${round} ${side}: plain ${told(cost.plain)} µs, with all ${told(cost.used)} µs${ahead}`)
      measured[side] = [...(measured[side] ?? []), cost]
    }
  }
  return measured
}

const all = ({ ownUs, serverUs }: JobCost): number => ownUs + serverUs

function rowsOf(measured: Partial<Record<Side, OwnCost[]>>): Row[] {
  const figure = (side: Side, of: (cost: OwnCost) => number) => median((measured[side] ?? []).map(of))
  const times = (side: Side) => figure(side, ({ plain, used }) => all(used) / all(plain))
  const whole = (side: Side) => figure(side, ({ used }) => all(used))
  const own = (store: Store): Row => ({
    label: `work: CPU of an event with limit, fair and priority, process and server, at most 1,000 waiting, ${store}`,
    unit: 'µs CPU/event',
    heddle: whole(store),
    baseline: figure(store, ({ plain }) => all(plain)),
    baselineName: 'a plain event',
    ratio: times(store),
    target: ratioTo('at most', MOST),
    faults: [],
    note: `of it the process: ${figure(store, ({ used }) => used.ownUs)?.toFixed(1) ?? '–'}, plain ${figure(store, ({ plain }) => plain.ownUs)?.toFixed(1) ?? '–'}`,
  })
  const beside = (peer: Peer): Row => {
    const { title, store } = PEERS[peer]
    const [heddle, baseline] = [whole(store), whole(peer)]
    return {
      label: `work: the same on ${store}`,
      unit: 'µs CPU/event',
      heddle,
      baseline,
      baselineName: title,
      ratio: heddle === null || baseline === null ? null : heddle / baseline,
      target: null,
      faults: [],
      note: `that costs ${times(peer)?.toFixed(2) ?? '–'} × of its plain job`,
    }
  }
  const ahead = (store: Store): Row => ({
    label: `work: the same when the publisher is ahead of the handlers, ${store}`,
    unit: 'µs CPU/event',
    heddle: figure(store, (cost) => all(cost.all!.used)),
    baseline: figure(store, (cost) => all(cost.all!.plain)),
    baselineName: 'a plain event',
    ratio: figure(store, (cost) => all(cost.all!.used) / all(cost.all!.plain)),
    target: null,
    faults: [],
  })
  return [...STORES.map(own), ...STORES.map(ahead), ...(Object.keys(PEERS) as Peer[]).map(beside)]
}

/** @returns what measures the two kinds of events in turn, on one server */
async function heddleOn(
  store: Store,
  context: CaseContext,
  owner: Owner,
  stage: Stage,
): Promise<() => Promise<OwnCost>> {
  const env = await stage.settings(store)
  const server = await startOn(context, owner, env, `work-costs-${store}`)
  const isForgotten =
    store === 'SQLite' ? onFile(owner, join(server.directory, 'bench.db')) : await onServer(owner, env)
  const run = async (used: boolean, events: number, ahead: number): Promise<JobCost> => {
    const clocks = () => [treeCpuUs(server.pid), store === 'SQLite' ? 0 : treeCpuUs(stage.postmaster)] as const
    const before = clocks()
    await ask(server, 'run', { events, used, ahead, note: STORED_NOTE })
    await until(isForgotten, 'all events are forgotten')
    const [ownUs, serverUs] = clocks().map((us, n) => (us - before[n]!) / events)
    return { ownUs: ownUs!, serverUs: serverUs! }
  }
  for (const used of [false, true]) await run(used, WARMUP_EVENTS, AHEAD.some)
  let rounds = 0
  return async () => {
    const isUsedFirst = rounds++ % 2 === 1
    const inTurn = async (ahead: number): Promise<Cost> => {
      const first = await run(isUsedFirst, EVENTS, ahead)
      const second = await run(!isUsedFirst, EVENTS, ahead)
      return isUsedFirst ? { plain: second, used: first } : { plain: first, used: second }
    }
    return { ...(await inTurn(AHEAD.some)), all: await inTurn(AHEAD.all) }
  }
}

function onFile(owner: Owner, path: string): () => boolean {
  const database = new Database(path, { readonly: true })
  owner.after(() => database.close())
  const left = database.prepare('SELECT count(*) FROM heddle_delivery').pluck()
  return () => Number(left.get()) === 0
}

async function onServer(owner: Owner, env: Record<string, string>): Promise<() => Promise<boolean>> {
  const client = new pg.Client({
    host: env.RDB_HOST!,
    port: Number(env.RDB_PORT),
    user: env.RDB_USER!,
    password: env.RDB_PASSWORD!,
    database: env.RDB_DATABASE!,
  })
  await client.connect()
  owner.after(() => client.end())
  return async () => (await client.query('SELECT 1 FROM heddle_delivery LIMIT 1')).rowCount === 0
}
