import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MetricRecord, Plugin, sql, type Tools } from '#heddle'
import { plugin } from '#heddle/testing'

class Composer extends Plugin {
  readonly tools: Pick<Tools, 'db' | 'registry'>

  constructor({ db, registry }: Tools) {
    super()
    this.tools = { db, registry }
  }
}

test('the db of a plugin composes statements, which is no call of a tool; its transactions take them', async (t) => {
  const app = await plugin(t, Composer)
  const { db, registry } = app.plugin.tools
  const records: MetricRecord[] = []
  registry.addMetricsSink((record) => records.push(record))
  assert.equal(db.sql, sql)
  await db.execute(db.sql`CREATE TABLE items (id INTEGER, ${db.sql.id('order')} TEXT)`)
  const ids = await db.transaction(async (tx) => {
    await tx.execute(db.sql`INSERT INTO items ${db.sql.rows(['id', 'order'], [{ id: 1, order: 'a' }])}`)
    return tx.query(db.sql`SELECT id FROM items WHERE ${db.sql.in('order', ['a'])}`)
  })
  assert.deepEqual(ids, [{ id: 1 }])
  assert.deepEqual(
    records.filter(({ tool }) => tool === 'db').map(({ method, success }) => [method, success]),
    [
      ['execute', true],
      ['execute', true],
      ['query', true],
      ['transaction', true],
    ],
  )
})
