/** The order of a key on PostgreSQL while processes come and go. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { benchOn } from '../../contracts/log-bench.ts'
import { POSTGRES } from '../../contracts/log-kinds.ts'
import { handled, notesOf, numbers, pause } from '../../contracts/log-rule.ts'
import { rowsOfServer } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

/** A process looks once a second whether it is alone. */
const ALONE_MS = 3000

test('what was under way while a process became alone keeps its place', async (t) => {
  let env: Record<string, string> = {}
  const bench = benchOn({ after: (end) => t.after(end) }, async (owner, hasOwnServer) => {
    const place = await POSTGRES.place(owner, hasOwnServer)
    env = place?.env ?? {}
    return place
  })
  const store = await bench.own(t, false)
  if (store === null) return t.skip('there is no such server')
  const log = { ...store, patienceMs: 60_000 }
  const first = await log.open('first')
  const access = {
    host: env.RDB_HOST!,
    port: Number(env.RDB_PORT),
    user: env.RDB_USER!,
    password: env.RDB_PASSWORD!,
    database: env.RDB_DATABASE!,
  }
  const [rows, lock] = [
    rowsOfServer({ after: (end) => t.after(end) }, access),
    rowsOfServer({ after: (end) => t.after(end) }, access),
  ]
  const ids = [await first.publish('work', { tag: 't', n: 0 }, { key: 't' })]
  await handled(log, 't', 'work', ids)
  assert.equal(await first.stop(), 0)
  // Another process, which says nothing.
  await rows(
    `INSERT INTO heddle_process (epoch, replica, identity, expires_at, knows)
     VALUES (nextval('heddle_epoch'), 'silent', '{}', now() + interval '1 hour', 1000)`,
  )
  const second = await log.open('second', { without: 'work' })
  for (const n of [1, 2, 3]) ids.push(await second.publish('work', { tag: 't', n }, { key: 't' }))
  await lock('BEGIN')
  await lock("SELECT 1 FROM heddle_process WHERE replica = 'second' FOR UPDATE")
  const held = second.publish('work', { tag: 't', n: 4 }, { key: 't' })
  const waits =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO heddle_event%'"
  const isHeld = async (): Promise<boolean> => (await rows(waits)).length === 1
  await until(isHeld, 'an event that is being stored', 60_000)
  await rows("DELETE FROM heddle_process WHERE replica = 'silent'")
  await pause(ALONE_MS)
  await lock('COMMIT')
  ids.push(await held)
  for (const n of [5, 6]) ids.push(await second.publish('work', { tag: 't', n }, { key: 't' }))
  await handled(log, 't', 'too', ids)
  assert.equal(await second.stop(), 0)
  const third = await log.open('third')
  ids.push(await third.publish('work', { tag: 't', n: 7 }, { key: 't' }))
  await handled(log, 't', 'work', ids)
  assert.deepEqual(
    notesOf(log, 't', 'work').map(({ n }) => n),
    numbers(8),
  )
})
