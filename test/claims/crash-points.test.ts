import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { isEmpty, kill, type LogStore, onSqlite, STORES } from '../rooms/event-store/databases.ts'
import { DOMAINS_DIR, Points } from '../rooms/event-store/failpoints.ts'
import type { Heddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

const ENV = { DOMAINS_DIR, EVENT_BUS_DRIVER: 'database' }

interface Passed {
  event_id: string
  name: string
}
const passed = async (store: LogStore, name: string): Promise<Passed[]> =>
  (await store.rows<Passed>('SELECT event_id, name FROM passed')).filter((each) => each.name === name)
const points = async (store: LogStore): Promise<string[]> =>
  (await store.rows<{ name: string }>('SELECT name FROM points')).map(({ name }) => name)
const logged = async (store: LogStore): Promise<string[]> => {
  const sql = `SELECT event_id AS id FROM heddle_delivery ORDER BY seq`
  return [...new Set((await store.rows<{ id: string }>(sql)).map((row) => row.id))]
}
const lettersOf = async (heddle: Heddle): Promise<DeadLetter[]> => (await heddle.json('/dead-letters')).body.letters

for (const [name, storeOf] of STORES) {
  test(`where the process ends on the way of an event (${name})`, { timeout: 120_000 }, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const at = await Points.make(t)
    const first = await store.start(ENV)

    await t.test('before the commit: neither row nor event', async () => {
      const exited = once(first.process, 'exit')
      at.send(first, '/points/before-commit', { name: 'early' })
      assert.deepEqual(await exited, [null, 'SIGKILL'])
      assert.deepEqual(await points(store), [])
      assert.deepEqual(await logged(store), [])
    })

    // From the moment on at which the primary stands still, nothing of what the lane does is known to the hub.
    const second = await store.start(ENV)
    const { id: handled } = await at.publish(second, 'handled')
    const { id: failed } = await at.publish(second, 'failed', { fail: true })
    const { id: under } = await at.publish(second, 'under way')
    at.send(second, '/points/stored', { name: 'stored' })
    await at.told('handled.begun', 'failed.begun', 'under way.begun', 'stored.begun')
    at.send(second, '/hold', { mark: join(at.folder, 'held') })
    await at.told('held')
    await at.letGo('handled', 'failed', 'stored')
    await at.told('failed.failed')
    await until(async () => (await passed(store, 'handled')).length === 1, 'the effect of the handler')
    await until(async () => (await points(store)).length === 1, 'the commit')
    const inLog = await logged(store)
    await kill(second)
    await at.letGo('under way')
    const third = await store.start(ENV)

    await t.test('after the commit, before the hub: delivered by the next process, under its id', async () => {
      assert.deepEqual(inLog.slice(0, 3), [handled, failed, under])
      await until(async () => (await passed(store, 'stored')).length > 0, 'the stored event handled')
      const [stored] = await passed(store, 'stored')
      assert.equal(stored!.event_id, inLog[3])
    })

    await t.test('in a handler: delivered again', async () => {
      await until(async () => (await passed(store, 'under way')).length > 0, 'the event handled')
      assert.deepEqual(await passed(store, 'under way'), [{ event_id: under, name: 'under way' }])
    })

    await t.test('handled, not forgotten: delivered again', async () => {
      const twice = { event_id: handled, name: 'handled' }
      await until(async () => (await passed(store, 'handled')).length === 2, 'the event handled again')
      assert.deepEqual(await passed(store, 'handled'), [twice, twice])
    })

    await t.test('failed, before its dead letter is stored: it is tried again, and is one letter', async () => {
      await until(async () => (await lettersOf(third)).length > 0, 'a letter')
      assert.deepEqual(
        (await lettersOf(third)).map(({ event_id, error, attempts }) => ({ event_id, error, attempts })),
        [{ event_id: failed, error: 'failed fails', attempts: 1 }],
      )
      await isEmpty(store)
    })

    await t.test('a lane alone, in a handler: delivered again by the same process', async () => {
      await at.letGo('exit')
      const { id } = await at.publish(third, 'exit', { exit: true })
      await until(async () => (await passed(store, 'exit')).length > 0, 'the event handled', 60_000)
      assert.deepEqual(await passed(store, 'exit'), [{ event_id: id, name: 'exit' }])
      await until(() => third.logs.some(({ msg }) => /^Lane 0 died: process\.exit\(1\)/.test(msg)), 'its death')
      await isEmpty(store)
    })
    assert.equal(await third.stop(), 0)
  })
}

test('a database that does not take everything', { timeout: 120_000 }, async (t) => {
  const store = (await onSqlite(t))!
  const at = await Points.make(t)
  const heddle = await store.start(ENV)
  const other = new Database(store.path!, { timeout: 10_000 })
  t.after(() => other.close())

  await t.test('a dead letter and the end of its event are one commit', async () => {
    other.exec("CREATE TRIGGER held BEFORE DELETE ON heddle_delivery BEGIN SELECT RAISE(ABORT, 'not now'); END")
    await at.letGo('torn')
    const { id } = await at.publish(heddle, 'torn', { fail: true })
    const refused = () =>
      heddle.logs.some(({ msg }) => /Writing to the event store failed and is repeated: .*not now/.test(msg))
    await until(refused, 'the commit is refused')
    assert.deepEqual(await logged(store), [id])
    assert.deepEqual(await store.rows('SELECT id FROM heddle_dead'), [])
    other.exec('DROP TRIGGER held')
    await isEmpty(store)
    assert.deepEqual(await store.rows('SELECT event_id FROM heddle_dead'), [{ event_id: id }])
  })

  await t.test('locked: publish rejects, and what is in memory goes on', async () => {
    for (const name of ['one', 'two', 'three']) await at.publish(heddle, name, { quiet: true }, { key: 'k' })
    await at.told('one.begun')
    other.exec('BEGIN IMMEDIATE')
    await at.letGo('one', 'two')
    await at.told('three.begun')
    assert.equal((await at.publish(heddle, 'refused')).status, 503)
    assert.equal((await logged(store)).length, 3, 'none of them can be forgotten')
    other.exec('ROLLBACK')
    await at.letGo('three')
    await isEmpty(store)
    assert.equal((await at.publish(heddle, 'taken')).status, 201)
    await at.letGo('taken')
    await at.told('taken.begun')
    assert.equal(at.isTold('refused.begun'), false)
    await isEmpty(store)
  })
})
