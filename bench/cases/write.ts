import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BenchCase, type CaseContext, type Row, ratioTo } from '../bench-case.ts'
import { inChild } from '../child.ts'
import { compare, compared, type Load, perSec } from '../comparison.ts'
import { postRequest } from '../load/client.ts'
import type { LoadResult } from '../load/plan.ts'
import { askJson, type BenchServer, heddleSide, serverSide } from '../server.ts'
import type transactions from '../sqlite/transactions.ts'

const BODIES = 32
const CONNECTIONS = 64
const SETTLE_DEADLINE_MS = 5000
const SETTINGS = ['full', 'normal'] as const

type Synchronous = (typeof SETTINGS)[number]
type Measured = { row: Row; details: unknown }

export const write: BenchCase = {
  name: 'write',
  title: 'POST with a validated JSON body, one SQLite insert, one event with one subscriber; both sides sync alike',
  async run(context) {
    const measured: Measured[] = []
    for (const synchronous of SETTINGS) measured.push(await measureRequests(context, synchronous))
    if (!context.baselinesOnly) {
      for (const synchronous of SETTINGS) measured.push(await measureTransactions(context, synchronous))
    }
    return { rows: measured.map(({ row }) => row), details: measured.map(({ details }) => details) }
  },
}

/** An item of usual length. */
export const itemTo = (path: string, index = 0): string =>
  postRequest(path, { name: `item ${index}`, quantity: index + 1, note: 'a note of usual length' })

export const itemsTo = (path: string): Load => ({
  requests: Array.from({ length: BODIES }, (_, index) => itemTo(path, index)),
  connections: CONNECTIONS,
})

/** Two inserts in a transaction, through the tool and with the driver alone, in one thread. */
async function measureTransactions(context: CaseContext, synchronous: Synchronous): Promise<Measured> {
  const { measureMs, rounds } = context
  context.step(`transactions, ${synchronous}`)
  const plan = { synchronous, callers: CONNECTIONS, measureMs, rounds }
  const profileDir = context.profileDir(`transactions-${synchronous}`)
  const figures = await inChild<typeof transactions>('sqlite/transactions.ts', plan, profileDir)
  const { heddle, bare, ratio, lost } = figures
  const row: Row = {
    label: `write: two inserts in a transaction, synchronous=${synchronous}`,
    unit: 'transactions/s',
    heddle: heddle.perSecond,
    baseline: bare.perSecond,
    baselineName: 'better-sqlite3, one after another',
    ratio,
    target: ratioTo('at least', 2),
    faults: lost === 0 ? [] : [`${lost} acknowledged rows are not there`],
    note: `CPU ${heddle.cpuUs.toFixed(1)} µs each, bare ${bare.cpuUs.toFixed(1)} µs`,
  }
  context.say(`${row.label}: ${Math.round(heddle.perSecond)}/s, bare ${Math.round(bare.perSecond)}/s`)
  return { row, details: figures }
}

/** Both sides write with the same setting of SQLite. */
async function measureRequests(context: CaseContext, synchronous: Synchronous): Promise<Measured> {
  // Neither side stores the event: `durable` compares those that do.
  const env = { SQLITE_SYNCHRONOUS: synchronous, EVENT_BUS_DRIVER: 'in_process' }
  const rounds = await compare(context, {
    sides: {
      ...heddleSide(context, 'heddle', 1, env),
      ...serverSide(context, 'fastify', 'bench/baselines/shared-thread-fastify.ts', { env }),
    },
    load: itemsTo('/bench/items'),
    before: verifyAnswer,
    after: verifyEvents,
  })
  const row: Row = {
    label: `write: requests per second, synchronous=${synchronous}`,
    unit: 'requests/s',
    ...compared(rounds, perSec, 'heddle', 'fastify', 'Fastify + better-sqlite3'),
    target: ratioTo('at least', 2),
  }
  return { row, details: rounds }
}

/** Valid bodies are stored and answered with 201, others with 422. */
async function verifyAnswer(server: BenchServer): Promise<void> {
  const created = await askJson(server, '/bench/items', { post: { name: 'first', quantity: 1 }, status: 201 })
  assert.deepEqual(created, { success: true, data: { id: 1 } }, server.name)
  await askJson(server, '/bench/items', { post: { name: '', quantity: 0 }, status: 422 })
}

/** Checks that the event of every answered request was handled: no side may be fast by skipping work. */
export async function verifyEvents(server: BenchServer, { okWithWarmup }: LoadResult): Promise<void> {
  const deadlineMs = performance.now() + SETTLE_DEADLINE_MS
  for (;;) {
    const { data } = await askJson<{ data: { handled: number } }>(server, '/bench/items/handled')
    // The first item was created before the load.
    if (data.handled > okWithWarmup) return
    if (performance.now() > deadlineMs) {
      throw new Error(`${server.name} handled ${data.handled} events of ${okWithWarmup} requests`)
    }
    await sleep(50)
  }
}
