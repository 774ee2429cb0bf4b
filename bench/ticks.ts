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
  /** Of those with a key: how many came before an older one of their key, or again. */
  misplaced: number
  /** How often the bus had no room and the publisher tried again. */
  refused: number
  elapsedMs: number
  perSec: number
  crossedPerSec: number
}

/** The lane that gets this request publishes from now on. @param leave it ends its subscription */
export async function publishingThread(server: BenchServer, leave = true): Promise<number> {
  const order = { run: 'first', count: 0, leave }
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
  return { published: order.count, refused, ...(await untilHandled([handler], order, startedAtMs)) }
}

/** A process, and its thread that publishes. */
export interface Publisher {
  readonly server: BenchServer
  readonly thread: number
}

/** Each of some processes publishes its share of the events, and all of them handle them. */
export async function sharedRun(
  publishers: readonly Publisher[],
  { run, count, keys, note }: Pick<TickOrder, 'run' | 'count' | 'note'> & { keys: number },
): Promise<TickRun> {
  const share = { run, keys, count: count / publishers.length, batch: BATCH, ...(note === undefined ? {} : { note }) }
  const starts = await Promise.all(publishers.map(({ server, thread }) => publish(server, { ...share, thread })))
  const startedAtMs = Math.min(...starts.map((start) => start.startedAtMs))
  const refused = starts.reduce((sum, start) => sum + start.refused, 0)
  const servers = publishers.map(({ server }) => server)
  return { published: count, refused, ...(await untilHandled(servers, { run, count }, startedAtMs)) }
}

/** What makes the figures of some runs invalid. */
export const lostIn = (
  runs: readonly (Pick<TickRun, 'handled' | 'published'> & Partial<Pick<TickRun, 'misplaced'>>)[],
): string[] =>
  runs
    .filter(({ handled, published, misplaced = 0 }) => handled !== published || misplaced > 0)
    .map(
      ({ handled, published, misplaced = 0 }) => `${handled} handled of ${published} published, ${misplaced} misplaced`,
    )

/** Waits until some servers have handled all events of a run; after a while it tells how many they have. */
async function untilHandled(
  servers: readonly BenchServer[],
  { run, count }: Pick<TickOrder, 'run' | 'count'>,
  startedAtMs: number,
) {
  const deadlineMs = performance.now() + SETTLE_DEADLINE_MS
  for (;;) {
    const lanes = (await Promise.all(servers.map(countsOf))).flat().filter((lane) => lane.run === run)
    const handled = lanes.reduce((sum, lane) => sum + lane.handled, 0)
    if (handled >= count || performance.now() > deadlineMs) {
      const crossed = lanes.reduce((sum, lane) => sum + lane.crossed, 0)
      const misplaced = lanes.reduce((sum, lane) => sum + lane.misplaced, 0)
      const elapsedMs = Math.max(...lanes.map((lane) => lane.lastAtMs)) - startedAtMs
      const perSec = (handled / elapsedMs) * 1000
      return { handled, crossed, misplaced, elapsedMs, perSec, crossedPerSec: (crossed / elapsedMs) * 1000 }
    }
    await sleep(10)
  }
}

async function countsOf(server: BenchServer): Promise<TickCount[]> {
  const reply = await askJson<{ data: { lanes: Record<string, TickCount> } }>(server, '/bench/count')
  return Object.values(reply.data.lanes)
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
