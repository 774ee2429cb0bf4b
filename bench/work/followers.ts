// What 1,000 followers of 1,000 running events cost, and how soon they hear.
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CaseContext, type CaseResult, figureTo, type Row } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { treeCpuUs } from '../cpu.ts'
import type { Followed, MeasureFollowers } from '../peers/bullmq/plan.ts'
import { median } from '../report.ts'
import type { BenchServer } from '../server.ts'
import { runningIn, startPair, untilNoneRuns } from './cancels.ts'
import { ask, STORES, type Stage, type Store, startOn, until } from './stage.ts'

const FOLLOWED = 1000
/** Clients that come at the same time: a route takes three quarters of LANE_MAX_INFLIGHT. */
const AT_ONCE = 100
const PROBES = 100
/** The clock of a process has steps of 10 ms. */
const WINDOW_MS = 5000
/** BullMQ renews the locks of its active jobs every 15 s. */
const PEER_WINDOW_MS = 15_000
const SETTLE_MS = 3000
const MOST_PERCENT = 5

type Side = Store | 'bullmq'

interface Seen extends Followed {
  /** The same CPU before anybody follows, with nothing running. */
  alonePercent: number
}

export async function measureFollowers(context: CaseContext, stage: Stage): Promise<CaseResult> {
  const measured: Record<Side, Seen[]> = { SQLite: [], PostgreSQL: [], bullmq: [] }
  const windowMs = Math.max(WINDOW_MS, context.measureMs)
  const bullmq = async (): Promise<Seen> => ({
    ...(await inChild<MeasureFollowers>('peers/bullmq/followers.mjs', {
      access: stage.redis,
      followed: FOLLOWED,
      probes: PROBES,
      measureMs: Math.max(PEER_WINDOW_MS, windowMs),
    })),
    alonePercent: 0,
  })
  for (let round = 1; round <= context.rounds; round++) {
    for (const side of [...(context.baselinesOnly ? [] : STORES), 'bullmq'] as const) {
      context.step(`round ${round} of ${context.rounds}, ${FOLLOWED} followers, ${side}`)
      const seen = side === 'bullmq' ? await bullmq() : await heddleOn(side, context, stage, windowMs)
      context.say(
        `round ${round} ${side}: idle ${seen.idlePercent.toFixed(1)} % of a core (without ${seen.alonePercent.toFixed(1)}), a report ${median(seen.reports)!.toFixed(0)} ms, all at once ${seen.allMs.toFixed(0)} ms`,
      )
      measured[side].push(seen)
    }
  }
  return { rows: STORES.flatMap((store) => rowsOf(store, measured)), details: { followers: measured } }
}

function rowsOf(store: Store, measured: Record<Side, Seen[]>): Row[] {
  const of = (side: Side, figure: (seen: Seen) => number) => median(measured[side].map(figure))
  const where = store === 'SQLite' ? 'SQLite' : 'PostgreSQL, half of the handlers in another process'
  const report = ({ reports }: Seen) => median(reports)!
  const [cpu, took] = [of(store, ({ idlePercent }) => idlePercent), of(store, report)]
  const other = of('bullmq', report)
  return [
    {
      label: `work: 1,000 followers of 1,000 events while nothing changes, CPU, ${where}`,
      unit: '% of a core',
      heddle: cpu,
      baseline: of(store, ({ alonePercent }) => alonePercent),
      baselineName: 'the process before anything ran',
      ratio: null,
      target: figureTo('at most', MOST_PERCENT, '%'),
      faults: [],
      note: `BullMQ with 1,000 active jobs and as many listeners of one QueueEvents, without HTTP: ${of('bullmq', ({ idlePercent }) => idlePercent)?.toFixed(2) ?? '–'} %`,
    },
    {
      label: `work: a progress until its client has it, ${where}`,
      unit: 'ms',
      heddle: took,
      baseline: other,
      baselineName: 'BullMQ: a listener of QueueEvents, without HTTP',
      ratio: took === null || other === null ? null : took / other,
      target: null,
      faults: [],
      note: `all 1,000 at once: the last after ${of(store, ({ allMs }) => allMs)?.toFixed(0) ?? '–'} and ${of('bullmq', ({ allMs }) => allMs)?.toFixed(0) ?? '–'} ms`,
    },
  ]
}

async function heddleOn(store: Store, context: CaseContext, stage: Stage, windowMs: number): Promise<Seen> {
  const owner = new Owner()
  try {
    const servers =
      store === 'SQLite'
        ? [await startOn(context, owner, await stage.settings(store), 'work-followed-SQLite')]
        : await startPair(context, owner, stage)
    const followed = servers[0]!
    const alonePercent = await idlePercent(followed, windowMs)
    const { ids } = await ask<{ ids: string[] }>(followed, 'begin', { events: FOLLOWED })
    await until(async () => (await Promise.all(servers.map(runningIn))).flat().length === FOLLOWED, 'all handlers run')
    const clients = new Map<string, Client>()
    owner.after(() => {
      for (const client of clients.values()) client.close()
    })
    for (const id of ids) {
      clients.set(id, new Client(followed, id))
      if (clients.size % AT_ONCE === 0)
        await until(() => [...clients.values()].every(({ isRunning }) => isRunning), 'the clients see their events run')
    }
    await sleep(SETTLE_MS)
    const idle = await idlePercent(followed, windowMs)
    const reports: number[] = []
    for (let probe = 0; probe < PROBES; probe++) {
      const id = ids[(probe * 7) % FOLLOWED]!
      const client = clients.get(id)!
      reports.push(await heardOf([client], () => report(servers, [id])))
      await sleep(20)
    }
    const allMs = await heardOf([...clients.values()], () => report(servers, ids))
    await ask(followed, 'cancel-all', {})
    await untilNoneRuns(servers)
    return { idlePercent: idle, alonePercent, reports, allMs }
  } finally {
    await owner.end()
  }
}

async function report(servers: readonly BenchServer[], ids: string[]): Promise<void> {
  await Promise.all(servers.map((server) => ask(server, 'report', { ids })))
}

/** @returns how long it took until the last of them has heard of its report, milliseconds */
async function heardOf(clients: readonly Client[], reporting: () => Promise<void>): Promise<number> {
  const before = new Map(clients.map((client) => [client, client.reports]))
  await reporting()
  await until(() => clients.every((client) => client.reports > before.get(client)!), 'the clients hear of the reports')
  return Math.max(...clients.map(({ tookMs }) => tookMs))
}

async function idlePercent({ pid }: BenchServer, windowMs: number): Promise<number> {
  const before = treeCpuUs(pid)
  const startMs = performance.now()
  await sleep(windowMs)
  return (treeCpuUs(pid) - before) / 10 / (performance.now() - startMs)
}

/** As an EventSource of a browser. */
class Client {
  isRunning = false
  reports = 0
  /** From the last report until it was here, milliseconds. */
  tookMs = 0
  readonly #request

  constructor({ host, port }: BenchServer, id: string) {
    this.#request = get({ host, port, path: `/work/follow/${id}`, agent: false }, (response) => this.#read(response))
    this.#request.on('error', () => {})
  }

  #read(response: IncomingMessage): void {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const nowMs = Date.now()
      text += chunk
      const frames = text.split('\n\n')
      text = frames.pop()!
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data !== undefined) this.#heard(JSON.parse(data), nowMs)
      }
    })
    response.on('error', () => {})
  }

  #heard({ state, note }: { state?: string; note?: string }, nowMs: number): void {
    if (state !== 'running') return
    this.isRunning = true
    if (note === undefined) return
    this.tookMs = nowMs - Number(note)
    this.reports++
  }

  close(): void {
    this.#request.destroy()
  }
}
