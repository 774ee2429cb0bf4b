// How long an event of another tenant waits behind 100,000 of one tenant.
import { setTimeout as sleep } from 'node:timers/promises'
import { type CaseContext, type CaseResult, figureTo, type Row } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import type { DbAccess } from '../elastic/db.ts'
import type { MeasureTurns, Turns } from '../peers/bullmq/plan.ts'
import { median } from '../report.ts'
import { ask, STORES, type Stage, type Store, startOn } from './stage.ts'

const BEHIND = 100_000
const PROBES = 100
/** Of each queue that is compared. */
const PEER_PROBES = 40
/** As the plugin has it. */
const TURN_MS = 20
const AT_A_TIME = 10
const SETTLE_MS = 1000
const MOST_MORE_MS = 50

const PEERS = {
  bullmq: { title: 'BullMQ: a job of higher priority', store: 'SQLite' },
  graphileWorker: { title: 'graphile-worker: queue_name of the tenant, and a higher priority', store: 'PostgreSQL' },
  pgBoss: { title: 'pg-boss: a job of higher priority', store: 'PostgreSQL' },
} as const
type Peer = keyof typeof PEERS
type Side = Store | Peer

export async function measureTurns(context: CaseContext, stage: Stage): Promise<CaseResult> {
  const sides: Partial<Record<Side, () => Promise<Turns>>> = {}
  if (!context.baselinesOnly) for (const store of STORES) sides[store] = () => heddleOn(store, context, stage)
  const plan = { behind: BEHIND, probes: PEER_PROBES, atATime: AT_A_TIME, turnMs: TURN_MS }
  sides.bullmq = () => inChild<MeasureTurns>('peers/bullmq/turns.mjs', { ...plan, access: stage.redis })
  for (const [peer, path] of [
    ['graphileWorker', 'postgres/graphile-turns.ts'],
    ['pgBoss', 'postgres/boss-turns.ts'],
  ] as const)
    sides[peer] = async () => {
      const access = await stage.database()
      return inChild<MeasureTurns<DbAccess>>(path, { ...plan, access })
    }
  const measured: Partial<Record<Side, Turns[]>> = {}
  for (let round = 1; round <= context.rounds; round++) {
    for (const [side, measure] of Object.entries(sides) as [Side, () => Promise<Turns>][]) {
      context.step(`round ${round} of ${context.rounds}, behind another tenant, ${side}`)
      const turns = await measure()
      const told = (tookMs: number[]) => `${median(tookMs)!.toFixed(1)} (at most ${Math.max(...tookMs).toFixed(0)})`
      context.say(`round ${round} ${side}: alone ${told(turns.alone)} ms, behind ${told(turns.behind)} ms`)
      measured[side] = [...(measured[side] ?? []), turns]
    }
  }
  return { rows: rowsOf(measured), details: { turns: measured } }
}

function rowsOf(measured: Partial<Record<Side, Turns[]>>): Row[] {
  const of = (side: Side, figure: (turns: Turns) => number) => median((measured[side] ?? []).map(figure))
  const more = (side: Side) => of(side, ({ alone, behind }) => median(behind)! - median(alone)!)
  const told = (side: Side): string =>
    [
      ['alone', ({ alone }: Turns) => median(alone)!],
      ['behind them', ({ behind }: Turns) => median(behind)!],
      ['at most', ({ behind }: Turns) => Math.max(...behind)],
    ]
      .map(([name, figure]) => `${name} ${of(side, figure as (turns: Turns) => number)?.toFixed(1) ?? '–'} ms`)
      .join(', ')
  const own = (store: Store): Row => ({
    label: `work: an event of another tenant begins later behind ${BEHIND.toLocaleString('en')} of one, ${store}`,
    unit: 'ms more',
    heddle: more(store),
    baseline: null,
    baselineName: null,
    ratio: null,
    target: figureTo('at most', MOST_MORE_MS, 'ms'),
    faults: [],
    note: told(store),
  })
  const beside = (peer: Peer): Row => {
    const { title, store } = PEERS[peer]
    return {
      label: `work: the same on ${store}`,
      unit: 'ms more',
      heddle: more(store),
      baseline: more(peer),
      baselineName: title,
      // Differences may be about zero.
      ratio: null,
      target: null,
      faults: [],
      note: `its own: ${told(peer)}`,
    }
  }
  return [...STORES.map(own), ...(Object.keys(PEERS) as Peer[]).map(beside)]
}

async function heddleOn(store: Store, context: CaseContext, stage: Stage): Promise<Turns> {
  const owner = new Owner()
  try {
    const server = await startOn(context, owner, await stage.settings(store), `work-turns-${store}`)
    const probe = async () => (await ask<{ tookMs: number[] }>(server, 'probe', { events: PROBES })).tookMs
    await probe()
    const alone = await probe()
    await ask(server, 'fill', { events: BEHIND, note: STORED_NOTE })
    await sleep(SETTLE_MS)
    return { alone, behind: await probe() }
  } finally {
    await owner.end()
  }
}
