// Events that the benchmark's own plugin publishes: who publishes them, and when all have been handled.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TickCount } from './domains/bench/tick-count.ts'
import { askJson, type BenchServer } from './server.ts'

/** Events that are published before the publisher waits until the bus has taken all of them. */
const BATCH = 1000
const LANE_ATTEMPTS = 100
const SETTLE_DEADLINE_MS = 60_000

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

/** The lane that gets this request publishes from now on, and ends its subscription. */
export async function publishingThread(server: BenchServer): Promise<number> {
  const order = { run: 'first', count: 0, leave: true }
  return (await askJson<{ data: { thread: number } }>(server, '/bench/publish', { post: order })).data.thread
}

export interface TickOrder {
  run: string
  count: number
  /** The one that publishes. */
  thread: number
  /** Goes with each event. */
  note?: string
}

/** @param handler the server that handles what the other one publishes */
export async function tickRun(server: BenchServer, order: TickOrder, handler = server): Promise<TickRun> {
  const { startedAtMs, refused } = await publish(server, { ...order, batch: BATCH })
  return { published: order.count, refused, ...(await untilHandled(handler, order, startedAtMs)) }
}

/** What makes the figures of some runs invalid. */
export const lostIn = (runs: readonly Pick<TickRun, 'handled' | 'published'>[]): string[] =>
  runs
    .filter(({ handled, published }) => handled !== published)
    .map(({ handled, published }) => `${handled} handled of ${published} published`)

/** Waits until a server has handled all events of a run; after a while it tells how many it has. */
async function untilHandled(server: BenchServer, { run, count }: TickOrder, startedAtMs: number) {
  const deadlineMs = performance.now() + SETTLE_DEADLINE_MS
  for (;;) {
    const reply = await askJson<{ data: { lanes: Record<string, TickCount> } }>(server, '/bench/count')
    const lanes = Object.values(reply.data.lanes).filter((lane) => lane.run === run)
    const handled = lanes.reduce((sum, lane) => sum + lane.handled, 0)
    if (handled >= count || performance.now() > deadlineMs) {
      const crossed = lanes.reduce((sum, lane) => sum + lane.crossed, 0)
      const elapsedMs = Math.max(...lanes.map((lane) => lane.lastAtMs)) - startedAtMs
      const perSec = (handled / elapsedMs) * 1000
      return { handled, crossed, elapsedMs, perSec, crossedPerSec: (crossed / elapsedMs) * 1000 }
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
