/**
 * Three processes on PostgreSQL while clients publish: killed, frozen, stopped in order, and the server restarted, one after another. Each fault once;
 * `FAULT_MINUTES=10 npm test -- --tier rooms logs/postgres-faults` goes on for ten minutes.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { benchOn } from '../../contracts/log-bench.ts'
import { POSTGRES } from '../../contracts/log-kinds.ts'
import { assertOrder, handled, isEmpty, orderOf, pause, underLoad, waitFor } from '../../contracts/log-rule.ts'
import type { LogProcess, LogStore } from '../../contracts/log-store.ts'
import { SEED, seededRandom } from '../../support/random.ts'

const MINUTES = Number(process.env.FAULT_MINUTES ?? 0)
/** Accepted between two faults, at least. */
const ACCEPTED_BETWEEN = 60
/** A process that stands still for longer than its lease of 10 s has lost its slots. */
const FROZEN_MS = [3000, 14_000]
const PATIENCE_MS = 120_000

interface World {
  readonly log: LogStore
  readonly living: LogProcess[]
  /** A whole number below another one. */
  readonly random: (below: number) => number
  /** Names of processes whose handlers may begin again elsewhere. */
  readonly excused: Set<string>
  started: number
}

async function startOne(world: World): Promise<void> {
  world.living.push(await world.log.open(`process-${++world.started}`))
}

function takeOne({ living, random }: World): LogProcess {
  const [taken] = living.splice(random(living.length), 1)
  return taken!
}

const FAULTS: Record<string, (world: World) => Promise<void>> = {
  'a process is killed': async (world) => {
    const victim = takeOne(world)
    world.excused.add(victim.name)
    await victim.crash()
    await startOne(world)
  },
  'a process stands still for a while': async (world) => {
    const victim = takeOne(world)
    victim.freeze()
    await pause(FROZEN_MS[0]!)
    victim.thaw()
    world.living.push(victim)
  },
  'a process ends in order': async (world) => {
    const leaving = takeOne(world)
    await leaving.stop()
    await startOne(world)
  },
  'the server is restarted': async ({ log }) => {
    await log.server!.stop()
    await log.server!.start()
  },
  'a process stands still for longer than its lease': async (world) => {
    const victim = takeOne(world)
    world.excused.add(victim.name)
    victim.freeze()
    await pause(FROZEN_MS[1]!)
    victim.thaw()
    // Others have its slots: it ends with status 75, and whatever restarts it starts the next one.
    await waitFor(world.log, () => victim.isGone, 'a process that was taken over to end')
    await startOne(world)
  },
}

test('nothing that was accepted is lost, and each key keeps its order, whatever three processes and the server do', async (t: TestContext) => {
  const store = await benchOn({ after: (end) => t.after(end) }, (owner) => POSTGRES.place(owner, true)).own(t, true)
  if (store === null) return t.skip('there is no such server')
  const log = { ...store, patienceMs: PATIENCE_MS }
  t.diagnostic(`SEED=${SEED}`)
  const world: World = { log, living: [], random: seededRandom(SEED), excused: new Set(), started: 0 }
  await Promise.all([startOne(world), startOne(world), startOne(world)])
  const untilMs = performance.now() + MINUTES * 60_000
  const names = Object.keys(FAULTS)
  let faults = 0
  const ids = await underLoad('faults', world.living, async ({ accepted }) => {
    while (faults < names.length || performance.now() < untilMs) {
      const enough = accepted.length + ACCEPTED_BETWEEN
      await waitFor(log, () => accepted.length > enough, 'more events accepted')
      const name = names[faults < names.length ? faults : world.random(names.length)]!
      faults++
      await FAULTS[name]!(world)
    }
  })
  await handled(log, 'faults', 'work', ids)
  const accepted = new Set(ids)
  assertOrder(
    orderOf(log, 'faults', 'work').filter(({ id }) => accepted.has(id)),
    [...world.excused],
  )
  await isEmpty(log)
  const begun = orderOf(log, 'faults', 'work').filter(({ what }) => what === 'begin').length
  t.diagnostic(`${ids.length} events accepted, ${begun} begun, ${faults} faults, ${world.started} processes`)
  assert.ok(begun >= ids.length)
})
