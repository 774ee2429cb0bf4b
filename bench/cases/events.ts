import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type BenchCase, figureTo } from '../bench-case.ts'
import { TICK_EVENT, type TickCount } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'

const EVENTS = 200_000
const WARMUP_EVENTS = 50_000
const BATCH = 1000
const LANE_ATTEMPTS = 100
const SETTLE_DEADLINE_MS = 30_000

/** One run of `count` events. */
export interface TickRun {
  published: number
  handled: number
  crossed: number
  /** How often the bus had no room and the publisher tried again. */
  refused: number
  elapsedMs: number
  perSec: number
  crossedPerSec: number
}

export const events: BenchCase = {
  name: 'events',
  title: 'Events published in one lane, handled in another, recorded in the trace',
  async run(context) {
    const runs = context.baselinesOnly ? [] : await measure(context.rounds, context.profileDir('heddle'), context.say)
    const crossedShare = median(runs.map((run) => run.crossed / run.handled))
    return {
      rows: [
        alone({
          label: 'events: published in one lane, handled in another',
          unit: 'events/s',
          heddle: median(runs.map((run) => run.crossedPerSec)),
          target: figureTo('at least', 300_000, 'events/s'),
          faults: runs
            .filter((run) => run.handled !== run.published)
            .map((run) => `${run.handled} handled of ${run.published} published`),
          ...(crossedShare === null ? {} : { note: `${(crossedShare * 100).toFixed(1)} % crossed lanes` }),
        }),
      ],
      details: { runs },
    }
  },
}

async function measure(
  rounds: number,
  profileDir: string | undefined,
  say: (text: string) => void,
): Promise<TickRun[]> {
  // In memory: `durable` measures those that are stored.
  const server = await startHeddle({ lanes: 2, env: { EVENT_BUS_DRIVER: 'in_process' }, profileDir })
  try {
    const thread = await publishingThread(server)
    await tickRun(server, { run: 'warm-up', thread, count: WARMUP_EVENTS })
    const runs: TickRun[] = []
    for (let round = 1; round <= rounds; round++) {
      const run = await tickRun(server, { run: `round-${round}`, thread, count: EVENTS })
      say(
        `round ${round} ${Math.round(run.perSec)} events/s, ${run.crossed} of ${run.handled} crossed lanes, ${run.refused} refusals`,
      )
      runs.push(run)
    }
    await verifyTrace(server, WARMUP_EVENTS + rounds * EVENTS)
    return runs
  } finally {
    await server.stop()
  }
}

/** The lane that gets this request publishes from now on, and ends its subscription. */
export async function publishingThread(server: BenchServer): Promise<number> {
  const order = { run: 'first', count: 0, leave: true }
  return (await askJson<{ data: { thread: number } }>(server, '/bench/publish', { post: order })).data.thread
}

export interface TickOrder {
  run: string
  /** The one that publishes. */
  thread: number
  count: number
  /** Goes with each event. */
  note?: string
}

export async function tickRun(server: BenchServer, order: TickOrder): Promise<TickRun> {
  const { run, count } = order
  const { startedAtMs, refused } = await publish(server, { ...order, batch: BATCH })
  const deadlineMs = performance.now() + SETTLE_DEADLINE_MS
  for (;;) {
    const reply = await askJson<{ data: { lanes: Record<string, TickCount> } }>(server, '/bench/count')
    const lanes = Object.values(reply.data.lanes).filter((lane) => lane.run === run)
    const handled = lanes.reduce((sum, lane) => sum + lane.handled, 0)
    if (handled >= count || performance.now() > deadlineMs) {
      const crossed = lanes.reduce((sum, lane) => sum + lane.crossed, 0)
      const elapsedMs = Math.max(...lanes.map((lane) => lane.lastAtMs)) - startedAtMs
      return {
        published: count,
        handled,
        crossed,
        refused,
        elapsedMs,
        perSec: (handled / elapsedMs) * 1000,
        crossedPerSec: (crossed / elapsedMs) * 1000,
      }
    }
    await sleep(10)
  }
}

/**
 * The dispatcher chooses the lane, so two requests go out at once: a lane that does not publish keeps its own for a moment, and the other one
 * goes elsewhere. The order is carried out once.
 */
async function publish(server: BenchServer, order: object): Promise<{ startedAtMs: number; refused: number }> {
  for (let attempt = 0; attempt < LANE_ATTEMPTS; attempt++) {
    const replies = await Promise.all([ask(), ask()])
    for (const { status, text } of replies) {
      if (status === 200) return JSON.parse(text).data
      if (status !== 409) throw new Error(`/bench/publish answered ${status}: ${text}`)
    }
  }
  throw new Error(`no request of ${LANE_ATTEMPTS * 2} reached the publishing lane`)

  async function ask(): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://${server.host}:${server.port}/bench/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(order),
    })
    return { status: response.status, text: await response.text() }
  }
}

/** Checks that every event was recorded: the topology has counted it, and the last records can be read. */
async function verifyTrace(server: BenchServer, published: number): Promise<void> {
  type Topology = Record<string, { fire_count: number }>
  const { topology } = await askJson<{ topology: Topology }>(server, '/system/events')
  const fired = topology[TICK_EVENT]?.fire_count
  if (fired !== published) throw new Error(`/system/events counts ${fired} ${TICK_EVENT}, ${published} were published`)
  const records = await askJson<{ event: string }[]>(server, '/system/traces/flat')
  const ticks = records.filter((record) => record.event === TICK_EVENT).length
  if (ticks === 0) throw new Error(`/system/traces/flat shows no ${TICK_EVENT}`)
}
