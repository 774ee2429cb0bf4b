import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { TransactionOptions } from '../../../src/contracts/db.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { type CreatePluginDb, onPostgres, onSqlite } from '../adapters/plugin-db.ts'
import { rejectsWith } from './rejects-with.ts'

const LEVELS = ['serializable', 'repeatable read', 'read committed'] as const

/** On both databases, as a plugin has the tool. */
function describeOptions(name: string, create: CreatePluginDb): void {
  const made = async (t: TestContext) => {
    const plugin = await create(t)
    await plugin.db.execute('CREATE TABLE kept (id TEXT PRIMARY KEY)')
    return plugin
  }

  describe(name, () => {
    test('isolation: each level commits what it writes', async (t) => {
      const { db } = await made(t)
      for (const isolation of LEVELS)
        await db.transaction((tx) => tx.execute('INSERT INTO kept (id) VALUES ($1)', [isolation]), { isolation })
      assert.equal((await db.query('SELECT id FROM kept')).length, LEVELS.length)
    })

    test('options: a wrong one is refused, and nothing runs', async (t) => {
      const { db } = await made(t)
      for (const [options, told] of [
        [{ isolation: 'snapshot' }, /isolation is one of serializable, repeatable read, read committed, not snapshot/],
        [{ isolation: 'SERIALIZABLE; DROP TABLE kept' }, /isolation is one of/],
        [{ isolation: null }, /isolation is one of/],
        [{ isolationLevel: 'serializable' }, /no option isolationLevel/],
        [{ readOnly: 'yes' }, /readOnly is true or false/],
        ['serializable', /are an object/],
        [null, /are an object/],
      ] as const) {
        let runs = 0
        const transaction = db.transaction(async () => void runs++, options as unknown as TransactionOptions)
        await rejectsWith('other', transaction, told)
        assert.equal(runs, 0)
      }
    })

    test('readOnly: it reads, and refuses what writes or publishes, whatever its function does with the error', async (t) => {
      const { db, delivered } = await made(t)
      await db.execute("INSERT INTO kept (id) VALUES ('a')")
      for (const isolation of [undefined, ...LEVELS]) {
        const options = { readOnly: true, isolation }
        assert.deepEqual(await db.transaction((tx) => tx.query('SELECT id FROM kept'), options), [{ id: 'a' }])
        for (const write of [
          "INSERT INTO kept (id) VALUES ('b')",
          "UPDATE kept SET id = 'c'",
          'DELETE FROM kept',
          'DROP TABLE kept',
        ]) {
          await rejectsWith(
            'other',
            db.transaction((tx) => tx.execute(write), options),
            /read-only/,
          )
          const caught = db.transaction(async (tx) => {
            await rejectsWith('other', tx.query(write), /read-only/)
            return 'done'
          }, options)
          await rejectsWith('other', caught, /read-only/)
        }
        await rejectsWith(
          'other',
          db.transaction((tx) => tx.publish('kept.event', {}), options),
          /publishes nothing/,
        )
      }
      assert.deepEqual(await db.query('SELECT id FROM kept'), [{ id: 'a' }])
      assert.deepEqual(delivered, [])
    })
  })
}

describeOptions('options of transactions on SQLite', onSqlite)
describeOnPostgres('options of transactions on PostgreSQL', (server) => {
  describeOptions('the same', onPostgres(server))

  test('isolation: a level is that of the transaction, whatever the default of the database is', async (t) => {
    const { db } = await onPostgres(server)(t)
    const level = async (options?: TransactionOptions) =>
      (
        await db.transaction(
          (tx) => tx.queryOne<{ level: string }>("SELECT current_setting('transaction_isolation') AS level"),
          options,
        )
      )?.level
    assert.equal(await level(), 'serializable')
    for (const isolation of LEVELS) assert.equal(await level({ isolation }), isolation)
  })
})
