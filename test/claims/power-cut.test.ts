import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { folders } from '../rooms/db/write-faults.ts'
import { DOMAINS_DIR, Points } from '../rooms/event-store/failpoints.ts'
import { startHeddle } from '../support/heddle.ts'
import { diskOf, fullDiskOf } from '../support/power/disk.ts'
import { until } from '../support/until.ts'

const DOMAINS = ['logged', 'durable'].map((name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url)))
const CLIENTS = 12
const ACKNOWLEDGED_WANTED = 400

/** Clients order, publish and store rows, alone and in pairs, until enough was acknowledged; then the power goes. @returns what was acknowledged, and what the disk still has */
async function cutUnderLoad(t: TestContext, synchronous: string) {
  const { work, data, path } = await folders(t)
  const disk = await diskOf(data, work)
  const own = { SQLITE_PATH: path, SQLITE_SYNCHRONOUS: synchronous, EVENT_BUS_DRIVER: 'database' }
  // No event is done with, so the log has all that it has taken.
  const env = { ...disk.env, ...own, LANE_ENV: 'HOLD', HOLD: 'wait' }
  // The tables are on the disk when the first process has closed the file.
  const first = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  assert.equal(await first.stop(), 0)
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
  const exited = once(heddle.process, 'exit')
  const orders = new Map<string, string>()
  const events: string[] = []
  const stored: string[] = []
  /** @returns the id of what was published, or null when it was not acknowledged */
  const send = async (path: string, body: object): Promise<string | null> => {
    const answer = await heddle.post(path, body).catch(() => null)
    return answer !== null && answer.status < 300 ? (answer.body.id ?? '') : null
  }
  const kinds: ((name: string) => Promise<void>)[] = [
    async (name) => {
      const id = await send('/orders', { id: name })
      if (id !== null) orders.set(name, id)
    },
    async (name) => {
      const id = await send('/events', { event: 'order.taken', payload: { id: name } })
      if (id !== null) events.push(id)
    },
    async (name) => {
      if ((await send('/rows', { id: name })) !== null) stored.push(name)
    },
    async (name) => {
      if ((await send('/pairs', { id: name })) !== null) stored.push(`${name}-a`, `${name}-b`)
    },
  ]
  const client = async (number: number): Promise<void> => {
    for (let n = 0; heddle.process.signalCode === null; n++) {
      await kinds[n % kinds.length]!(`${number}-${n}`)
      if (orders.size + events.length + stored.length >= ACKNOWLEDGED_WANTED) heddle.process.kill('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  await exited

  const left = new Database(join(disk.left, 'service.db'))
  t.after(() => left.close())
  assert.equal(left.pragma('integrity_check', { simple: true }), 'ok')
  const logged = left.prepare('SELECT event_id AS id, payload FROM heddle_delivery').all() as {
    id: string
    payload: string
  }[]
  return {
    orders,
    events,
    stored,
    kept: new Set(left.prepare('SELECT id FROM rows_kept').pluck().all() as string[]),
    rows: new Set(left.prepare('SELECT id FROM orders').pluck().all() as string[]),
    logged: new Set(logged.map(({ id }) => id)),
    loggedOrders: new Set(logged.map(({ payload }) => JSON.parse(payload).id as string)),
  }
}

test('a power cut takes no row, no event of it and no published event that was acknowledged', async (t) => {
  const { orders, events, stored, kept, rows, logged } = await cutUnderLoad(t, 'full')
  assert.ok(orders.size > 0 && events.length > 0 && stored.length > 0)
  assert.deepEqual(
    stored.filter((id) => !kept.has(id)),
    [],
  )
  assert.deepEqual(
    [...orders].filter(([order, id]) => !rows.has(order) || !logged.has(id)),
    [],
  )
  assert.deepEqual(
    events.filter((id) => !logged.has(id)),
    [],
  )
})

test('with SQLITE_SYNCHRONOUS=normal it takes the last rows and their events together', async (t) => {
  const { orders, rows, logged, loggedOrders } = await cutUnderLoad(t, 'normal')
  assert.ok(
    [...orders.keys()].some((order) => !rows.has(order)),
    'the cut takes nothing, so it proves nothing',
  )
  assert.deepEqual(
    [...orders].filter(([order, id]) => rows.has(order) !== logged.has(id)),
    [],
  )
  assert.deepEqual(
    [...rows].filter((order) => !loggedOrders.has(order)),
    [],
    'no row without its event, acknowledged or not',
  )
})

test('on a full disk publishers are told, what is in memory goes on, and with room what was accepted is forgotten', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await fullDiskOf(data, work)
  const at = await Points.make(t)
  const env = { ...disk.env, SQLITE_PATH: path, EVENT_BUS_DRIVER: 'database' }
  const heddle = await startHeddle(t, { domains: [DOMAINS_DIR], lanes: 1, env })
  const left = (): number => {
    const database = new Database(path, { readonly: true, timeout: 10_000 })
    try {
      return database.prepare('SELECT count(*) FROM heddle_delivery').pluck().get() as number
    } finally {
      database.close()
    }
  }
  for (const name of ['one', 'two', 'three']) await at.publish(heddle, name, { quiet: true }, { key: 'k' })
  await at.told('one.begun')
  await disk.fill()
  // What fits into the pages that are there is taken still.
  const wide = { quiet: true, filler: 'x'.repeat(500_000) }
  const refused = await until(async () => {
    const name = `refused ${crypto.randomUUID()}`
    const { status } = await at.publish(heddle, name, wide)
    await at.letGo(name)
    return status === 201 ? null : { name, status }
  }, 'an event is refused')
  assert.equal(refused.status, 503)
  at.send(heddle, '/points/stored', { name: 'never' })
  await at.told('never.begun')
  await at.letGo('one', 'two')
  await at.told('three.begun')
  await disk.empty()
  await at.letGo('three', 'never', 'after')
  await until(async () => (await at.publish(heddle, 'after', { quiet: true })).status === 201, 'it takes events again')
  await at.told('after.begun')
  await until(() => left() === 0, 'an empty log')
  assert.equal(at.isTold(`${refused.name}.begun`), false, 'what was refused is not handled')
})
