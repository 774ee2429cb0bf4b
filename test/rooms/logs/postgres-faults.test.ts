/**
 * Three processes on PostgreSQL while clients publish: killed, frozen, stopped in order, and the server restarted, one after another. Each fault once;
 * `FAULT_MINUTES=10 npm test -- --tier rooms logs/postgres-faults` goes on for ten minutes.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { keyColumnOf } from '../../../src/runtime/event-store/event-columns.ts'
import { slotOf } from '../../../src/runtime/event-store/server-tables.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { assertEffectsOnce, assertOneOwner, type LeaseEnd } from '../../contracts/log-judge.ts'
import { POSTGRES } from '../../contracts/log-kinds.ts'
import { assertOrder, handled, isEmpty, orderOf, pause, underLoad, waitFor } from '../../contracts/log-rule.ts'
import type { LogProcess, LogStore } from '../../contracts/log-store.ts'
import { SEED, seededRandom } from '../../support/random.ts'
import { type Query, rowsOfServer } from '../../support/rows.ts'

const MINUTES = Number(process.env.FAULT_MINUTES ?? 0)
/** Accepted between two faults, at least. */
const ACCEPTED_BETWEEN = 60
/** A process that stands still for longer than its lease of 10 s has lost its slots. */
const FROZEN_MS = [3000, 14_000]
/** From then on others may take the slots of a process that stands still: its lease, less the time since it was renewed. */
const LEASE_MS = 8000
const PATIENCE_MS = 120_000
const EFFECTS = fileURLToPath(new URL('../../contracts/effects', import.meta.url))

interface World {
  readonly log: LogStore
  readonly living: LogProcess[]
  /** A whole number below another one. */
  readonly random: (below: number) => number
  /** Of processes whose handlers may begin again elsewhere. */
  readonly ends: Map<string, LeaseEnd>
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
    const lostMs = Date.now()
    await victim.crash()
    world.ends.set(victim.name, { lostMs, overMs: Date.now() + 1 })
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
    const lostMs = Date.now() + LEASE_MS
    victim.freeze()
    await pause(FROZEN_MS[1]!)
    world.ends.set(victim.name, { lostMs, overMs: Date.now() })
    victim.thaw()
    // Others have its slots: it ends with status 75, and whatever restarts it starts the next one.
    await waitFor(world.log, () => victim.isGone, 'a process that was taken over to end')
    await startOne(world)
  },
}

test('nothing that was accepted is lost or has its effect twice, each key keeps its order, and a slot has one owner, whatever three processes and the server do', async (t: TestContext) => {
  let rows: Query | undefined
  const owner = { after: (end: () => Promise<void>) => t.after(end) }
  const placeOf = async (of: typeof owner) => {
    const place = await POSTGRES.place(of, true)
    if (place !== null) rows = rowsOf(of, place.env)
    return place
  }
  const store = await benchOn(owner, placeOf, [EFFECTS]).own(t, true)
  if (store === null) return t.skip('there is no such server')
  const log = { ...store, patienceMs: PATIENCE_MS }
  t.diagnostic(`SEED=${SEED}`)
  const world: World = { log, living: [], random: seededRandom(SEED), ends: new Map(), started: 0 }
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
  await isEmpty(log)
  const notes = orderOf(log, 'faults', 'work')
  const accepted = new Set(ids)
  assertOrder(
    notes.filter(({ id }) => accepted.has(id)),
    [...world.ends.keys()],
  )
  const keys = [...new Set(notes.map(({ key }) => key!))]
  assertOneOwner(notes, await slotsOf(rows!, keys), world.ends)
  const effects = (await rows!<{ event_id: string }>('SELECT event_id FROM effects')).map(({ event_id }) => event_id)
  assertEffectsOnce(effects, ids)
  const begun = notes.filter(({ what }) => what === 'begin').length
  t.diagnostic(
    `${ids.length} events accepted, ${begun} begun, ${effects.length} effects, ${faults} faults, ${world.started} processes`,
  )
  assert.ok(begun >= ids.length)
})

function rowsOf(owner: Parameters<typeof rowsOfServer>[0], env: Record<string, string>): Query {
  const { RDB_HOST, RDB_PORT, RDB_USER, RDB_PASSWORD, RDB_DATABASE } = env
  const access = { host: RDB_HOST, port: Number(RDB_PORT), user: RDB_USER, password: RDB_PASSWORD }
  return rowsOfServer(owner, { ...access, database: RDB_DATABASE } as Parameters<typeof rowsOfServer>[1])
}

/** By key, as PostgreSQL counts. */
async function slotsOf(rows: Query, keys: readonly string[]): Promise<(key: string) => number> {
  const list = keys.map((key) => `'${keyColumnOf(key)}'`).join()
  const found = await rows<{ slot: number }>(`SELECT ${slotOf('k.key')} AS slot FROM unnest(ARRAY[${list}]) AS k (key)`)
  const slots = new Map(keys.map((key, n) => [key, Number(found[n]!.slot)]))
  return (key) => slots.get(key)!
}
