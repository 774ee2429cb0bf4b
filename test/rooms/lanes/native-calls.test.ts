import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { type Asking, keepAsking } from '../../support/load.ts'
import { until } from '../../support/until.ts'
import { boxesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

const STALL_MS = 1000
const START_MS = 120_000
/** For each of the two lanes one, and one that waits. */
const HASHES = 3
const DEATHS = 2
const RELOADS = 5
/** Of a client between two requests. */
const BETWEEN_MS = 5
/** Less than what a lane that leaves may stand still. */
const COMPUTES_MS = 120
/** A hash has begun by then. */
const BEGINS_MS = 50

/** @param giveUpMs a client leaves after this, and asks again */
const askAgain = (heddle: Heddle, path: string, clients: number, giveUpMs = 30_000): Asking =>
  keepAsking(
    async () => {
      const response = await heddle.fetch(path, { signal: AbortSignal.timeout(giveUpMs) })
      await response.arrayBuffer()
      return response.status
    },
    { clients, everyMs: BETWEEN_MS },
  )

/** On a busy machine lanes may be too slow for the primary to give them work: it says so, and the client comes again. */
const answersOf = ({ statuses }: Asking): number[] => [...statuses.keys()].filter((status) => status !== 503)

const allUp = (heddle: Heddle): Promise<unknown> =>
  until(
    async () => {
      const { body } = await heddle.json('/system/lanes')
      const regular = (body as { role: string; state: string }[]).filter(({ role }) => role === 'regular')
      return regular.length === 2 && regular.every(({ state }) => state === 'ready')
    },
    'both lanes',
    START_MS,
  )

const start = (t: Parameters<typeof startHeddle>[0], env: Record<string, string> = {}): Promise<Heddle> =>
  startHeddle(t, { domains: NATIVE, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS), ...env } })

/** From its first crash on the plugin has a lane of its own, and gets 503 while that starts. */
async function endsALane(heddle: Heddle, way: string): Promise<void> {
  const status = await until(
    async () => {
      const response = await heddle.fetch(`/end/${way}`)
      return response.status === 503 ? null : response.status
    },
    'a lane to end',
    START_MS,
  )
  assert.ok(status === 500 || status === 504, `${status}`)
}

/** Nobody but the plugin that ends lanes is named, isolated or disabled. */
async function onlyCulpritBlamed(heddle: Heddle): Promise<void> {
  for (const { guilty, message } of await boxesOf(heddle)) {
    if (guilty?.plugin != null) assert.equal(guilty.plugin, 'fatal.EndLane', message)
  }
  const { plugins } = (await heddle.json('/system/status')).body
  assert.doesNotMatch(JSON.stringify(plugins), /Disabled until/)
}

describe('a lane that ends while native calls of it are under way', { concurrency: false }, () => {
  const ways = ['throw', 'exit', 'spin', 'buffers'] as const
  for (const way of ways) {
    test(`by ${way}: the process stays, and nobody else notices`, async (t) => {
      const heddle = await start(t, { LANE_MEMORY_MB: '128' })
      // The second call begins when the lane has been stopped.
      const hashes = askAgain(heddle, '/hash-twice', HASHES)
      const good = askAgain(heddle, '/good', 1)
      for (let death = 1; death <= DEATHS; death++) {
        await setTimeout(500)
        await endsALane(heddle, way)
        await until(() => heddle.logs.filter(({ msg }) => / died: /.test(msg)).length >= death, 'the report')
        await allUp(heddle)
      }
      await Promise.all([hashes.stop(), good.stop()])
      assert.deepEqual([answersOf(hashes), answersOf(good)], [[200], [200]])
      assert.equal(heddle.process.exitCode, null)
      await onlyCulpritBlamed(heddle)
      assert.equal(await heddle.stop(), 0)
    })
  }

  test('what has waited behind a loop that is stopped has its own time', async (t) => {
    const heddle = await start(t, { LANES: '1' })
    const waits = heddle.fetch(`/hash-and-compute?ms=${COMPUTES_MS}`)
    await setTimeout(BEGINS_MS)
    assert.equal((await heddle.fetch('/end/spin')).status, 504)
    assert.equal((await waits).status, 200)
    assert.equal(await heddle.stop(), 0)
  })

  test(`${RELOADS} reloads under clients that leave early`, async (t) => {
    // More than the cores can do: what the clients have left keeps its place, or new lanes would wait for thousands of hashes.
    const heddle = await start(t, { LANE_MAX_INFLIGHT: '6' })
    const clients = askAgain(heddle, '/hash', 2, 150)
    const ended = (how: RegExp) => heddle.logs.filter(({ msg }) => how.test(msg)).length
    // On a busy machine new lanes may take too long to boot: then the old ones go on, and it is asked for again.
    for (let asked = 1; ended(/^Reloaded/) < RELOADS; asked++) {
      heddle.process.kill('SIGHUP')
      const isGone = () => heddle.process.exitCode !== null || heddle.process.signalCode !== null
      await until(() => ended(/^(?:Reloaded|Not reloaded)/) >= asked || isGone(), 'the reload', START_MS)
      assert.deepEqual([heddle.process.exitCode, heddle.process.signalCode], [null, null])
    }
    await clients.stop()
    // What they have left may hold all places for a moment.
    await until(async () => (await heddle.fetch('/good')).status === 200, 'a place', START_MS)
    assert.equal(await heddle.stop(), 0)
  })

  test('by what it has replaced, which the report of it would need', async (t) => {
    const heddle = await start(t)
    for (let death = 1; death <= DEATHS; death++) {
      void heddle.fetch('/hash').catch(() => {})
      const { status } = await heddle.fetch('/end/patch')
      assert.ok(status === 500 || status === 503, `${status}`)
      // By what it has thrown, or by the lane's own look at what JavaScript brings, whichever comes first.
      await until(() => heddle.logs.some(({ msg }) => / died: (?:\S+ was )?replaced/.test(msg)), 'the report')
      await allUp(heddle)
    }
    assert.equal((await heddle.fetch('/good')).status, 200)
    assert.equal(await heddle.stop(), 0)
  })

  test('with LANE_FREEZE_BUILTINS nothing is replaced', async (t) => {
    const heddle = await start(t, { LANE_FREEZE_BUILTINS: 'true', LANES: '1' })
    // Without effect, or refused: then the lane has nothing to die of.
    await heddle.fetch('/end/patch', { signal: AbortSignal.timeout(1000) }).catch(() => null)
    assert.equal((await heddle.fetch('/hash')).status, 200)
    assert.deepEqual(await boxesOf(heddle), [])
    assert.equal(await heddle.stop(), 0)
  })

  test('which does not turn however often it is stopped: it is ended before its time', async (t) => {
    const heddle = await start(t)
    void heddle.fetch('/end/spin-timers').catch(() => {})
    await until(() => heddle.logs.some(({ msg }) => /does not leave: its thread is ended/.test(msg)), 'the end', 60_000)
    await allUp(heddle)
    assert.equal(await heddle.stop(), 0)
  })

  test('of which nobody awaits the end', async (t) => {
    const heddle = await start(t)
    for (let death = 1; death <= DEATHS; death++) {
      await Promise.all(Array.from({ length: 4 }, () => heddle.fetch('/hash-and-go')))
      assert.ok((await heddle.fetch('/end/throw')).status >= 500)
      await allUp(heddle)
    }
    assert.equal(await heddle.stop(), 0)
  })
})
